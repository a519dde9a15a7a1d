# libtorch from an unpacked torch wheel. The wheel's own package file would pull in CUDA; these targets do not.
# LIBTORCH_ROOT is the wheel's torch folder (bootstrap keeps it in a cache shared by clones).
set(LIBTORCH_ROOT "$ENV{LIBTORCH_ROOT}" CACHE PATH "torch folder of an unpacked wheel")
if(NOT "$ENV{XDG_CACHE_HOME}" STREQUAL "")
  set(_libtorch_cache $ENV{XDG_CACHE_HOME})
else()
  set(_libtorch_cache $ENV{HOME}/.cache)
endif()
set(_libtorch_hints ${LIBTORCH_ROOT} ${_libtorch_cache}/reckon/libtorch-2.11.0/torch)
find_path(Libtorch_INCLUDE_DIR torch/csrc/autograd/function.h HINTS ${_libtorch_hints} PATH_SUFFIXES include NO_DEFAULT_PATH)
foreach(library torch_cpu c10 torch_cuda c10_cuda)
  find_library(Libtorch_${library}_LIBRARY ${library} HINTS ${_libtorch_hints} PATH_SUFFIXES lib NO_DEFAULT_PATH)
endforeach()
if(Libtorch_INCLUDE_DIR)
  file(STRINGS ${Libtorch_INCLUDE_DIR}/torch/headeronly/version.h _version REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
  string(REGEX REPLACE "[^0-9;]" "" _version "${_version}")
  string(REPLACE ";" "." Libtorch_VERSION "${_version}")
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Libtorch
  REQUIRED_VARS Libtorch_torch_cpu_LIBRARY Libtorch_c10_LIBRARY Libtorch_INCLUDE_DIR VERSION_VAR Libtorch_VERSION)
if(Libtorch_FOUND AND NOT TARGET Libtorch::cpu)
  foreach(library torch_cpu c10)
    add_library(Libtorch::${library} SHARED IMPORTED)
    set_target_properties(Libtorch::${library} PROPERTIES IMPORTED_LOCATION ${Libtorch_${library}_LIBRARY}
      INTERFACE_INCLUDE_DIRECTORIES "${Libtorch_INCLUDE_DIR};${Libtorch_INCLUDE_DIR}/torch/csrc/api/include")
  endforeach()
  add_library(Libtorch::cpu INTERFACE IMPORTED)
  target_link_libraries(Libtorch::cpu INTERFACE Libtorch::torch_cpu Libtorch::c10)
endif()
if(Libtorch_FOUND AND Libtorch_torch_cuda_LIBRARY AND TARGET CUDA::cudart AND NOT TARGET Libtorch::cuda)
  foreach(library torch_cuda c10_cuda)
    add_library(Libtorch::${library} SHARED IMPORTED)
    set_target_properties(Libtorch::${library} PROPERTIES IMPORTED_LOCATION ${Libtorch_${library}_LIBRARY})
  endforeach()
  add_library(Libtorch::cuda INTERFACE IMPORTED)  # kernels register in static initialisers: never drop it
  target_link_libraries(Libtorch::cuda INTERFACE Libtorch::cpu
    "-Wl,--push-state,--no-as-needed" Libtorch::torch_cuda Libtorch::c10_cuda "-Wl,--pop-state" CUDA::cudart
    "-Wl,--allow-shlib-undefined")  # libtorch_cuda finds its own libraries at start; a toolkit has not all of them
endif()
