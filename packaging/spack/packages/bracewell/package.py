# SPDX-License-Identifier: MIT
from pathlib import Path

from spack_repo.builtin.build_systems.cmake import CMakePackage
from spack_repo.builtin.build_systems.cuda import CudaPackage
from spack_repo.builtin.build_systems.python import PythonExtension, PythonPipBuilder
from spack_repo.builtin.build_systems.rocm import ROCmPackage

from spack.package import *


class Bracewell(CMakePackage, CudaPackage, ROCmPackage, PythonExtension):
    """Fourier-space imaging operators with exact adjoints and gradients:
    projection for cryo-electron microscopy, parallel-beam tomography and
    ptychography. A header-only C++20 library on Kokkos, with programs and a
    Python package."""

    # The checkout that this recipe lies in is what it builds.
    checkout = Path(__file__).resolve().parents[4].as_uri()
    homepage = checkout
    git = checkout

    license("MIT")

    version("main", branch="main")

    variant("openmp", default=True, description="Kokkos for all cores of a host")
    variant("mpi", default=False, description="Sums over processes, programs under mpirun")
    variant("examples", default=True, description="The programs bracewell-*")
    variant("python", default=False, description="The Python package")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")

    depends_on("kokkos@5:5 cxxstd=20")
    depends_on("kokkos+openmp", when="+openmp")
    depends_on("kokkos+serial", when="~openmp")
    depends_on("kokkos+pic", when="+python")
    for arch in CudaPackage.cuda_arch_values:
        depends_on(f"kokkos+cuda+wrapper cuda_arch={arch}", when=f"+cuda cuda_arch={arch}")
    for target in ROCmPackage.amdgpu_targets:
        depends_on(f"kokkos+rocm amdgpu_target={target}", when=f"+rocm amdgpu_target={target}")
    conflicts("+cuda", when="cuda_arch=none", msg="name the GPU: cuda_arch=90")
    conflicts("+rocm", when="amdgpu_target=none", msg="name the GPU: amdgpu_target=gfx942")
    conflicts("+cuda", when="+rocm", msg="Kokkos has one kind of GPU")

    depends_on("fftw@3.3:3 precision=float,double")
    depends_on("hipfft", when="+rocm")
    depends_on("mpi@3.1:", when="+mpi")
    depends_on("eigen@3.4:5")

    with when("+examples"):
        depends_on("cairo+png+pdf+svg")
        depends_on("cli11@2:", type="build")
        depends_on("hdf5~mpi")
        depends_on("libtiff")
        depends_on("zlib-api")
        # Headers alone are used, and no recipe of Spack installs them.
        resource(
            name="gemmi",
            git="https://github.com/project-gemmi/gemmi.git",
            tag="v0.7.5",
            commit="5cc1c23c6007e0e6cbd69289c6f7c0bff50e943e",
            placement="gemmi",
        )

    extends("python@3.9:", when="+python")
    with when("+python"):
        depends_on("py-nanobind@2.4:", type="build")
        depends_on("py-numpy", type=("build", "run"))
        depends_on("py-pip", type="build")
        depends_on("py-scikit-build-core@0.10:", type="build")

    def compiler(self):
        if self.spec.satisfies("+cuda"):
            return [self.define("CMAKE_CXX_COMPILER", self["kokkos"].kokkos_cxx)]
        if self.spec.satisfies("+rocm"):
            return [self.define("CMAKE_CXX_COMPILER", self.spec["hip"].hipcc)]
        return []

    def cmake_args(self):
        options = self.compiler() + [
            self.define("Kokkos_ROOT", self.spec["kokkos"].prefix),
            self.define_from_variant("BRACEWELL_BUILD_EXAMPLES", "examples"),
            self.define("BRACEWELL_BUILD_TESTS", self.run_tests),
            self.define("BRACEWELL_BUILD_BENCHMARKS", False),
            self.define("CMAKE_DISABLE_FIND_PACKAGE_MPI", self.spec.satisfies("~mpi")),
        ]
        if self.spec.satisfies("+examples"):
            headers = join_path(self.stage.source_path, "gemmi", "include")
            options.append(self.define("gemmi_INCLUDE_DIR", headers))
        return options

    @run_after("install", when="+python")
    def install_python(self):
        settings = {"cmake.define.Kokkos_ROOT": self.spec["kokkos"].prefix}
        for option in self.compiler():
            name, value = option.removeprefix("-D").split("=", 1)
            settings[f"cmake.define.{name.split(':')[0]}"] = value
        arguments = [f"--config-settings={name}={value}" for name, value in settings.items()]
        pip = self.spec["python"].command
        pip.add_default_arg("-m", "pip")
        with working_dir(self.stage.source_path):
            pip(*PythonPipBuilder.std_args(self), f"--prefix={self.prefix}", *arguments, "./python")
