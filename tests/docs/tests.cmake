target_compile_definitions(test_docs_cryoem PRIVATE BRACEWELL_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
