# RECKON_CPU_CLONES: the attribute that compiles a function for several instruction sets, where compiler and linker can
# choose among them at start; empty elsewhere. RECKON_CPU_CLONES_OPTION is the compile option that defines it.
include(CheckCXXSourceCompiles)
set(clones "[[gnu::target_clones(\"arch=x86-64-v4\",\"arch=x86-64-v3\",\"default\")]]")
check_cxx_source_compiles("${clones} int f() { return 1; } int main() { return f(); }" RECKON_HAS_TARGET_CLONES)
if(NOT RECKON_HAS_TARGET_CLONES OR RECKON_SANITIZE)  # the choice is made before a sanitizer is ready
  set(clones "")
endif()
set(RECKON_CPU_CLONES_OPTION "-DRECKON_CPU_CLONES=${clones}")
