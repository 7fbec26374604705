target_compile_definitions(test_ptychography_storage PRIVATE BRACEWELL_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
