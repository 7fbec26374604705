// expect: Bracewell: spectra have two or three dimensions.
#include <bracewell/rfft/layout.hpp>

Bracewell::HalfSpectrumLayout<4> layout;
