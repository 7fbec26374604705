target_compile_definitions(test_ptychography_page PRIVATE BRACEWELL_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
