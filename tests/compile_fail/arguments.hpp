// Views that fit the projection operators; those beside this one replace one of them.
#pragma once

#include <bracewell/project/backproject.hpp>
#include <bracewell/project/project.hpp>

using namespace Bracewell;
using Complex = Kokkos::complex<float>;
using Space = Kokkos::DefaultExecutionSpace;
template <class DataType>
using View = Kokkos::View<DataType, Kokkos::LayoutRight, Space>;

inline const Space instance;
inline const View<Complex****> volumes, images;
inline const View<float****> matrices;
