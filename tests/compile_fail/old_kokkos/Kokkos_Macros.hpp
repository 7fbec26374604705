#pragma once

#define KOKKOS_VERSION 40701
