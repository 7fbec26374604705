#pragma once

/// Registers the benchmarks ptychography/experiment.
void add_experiments();
