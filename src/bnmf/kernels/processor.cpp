// A module of one string: the highest level of x86-64 (v2, v3, v4) that the processor and the operating system support.

#include <Python.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace {

const char* best_level() {
#if defined(__x86_64__)
    unsigned a, b, c, d, in_7 = 0, extended = 0;
    constexpr unsigned FMA = 1u << 12, MOVBE = 1u << 22, OSXSAVE = 1u << 27, AVX = 1u << 28, F16C = 1u << 29;
    constexpr unsigned IN_1 = FMA | MOVBE | OSXSAVE | AVX | F16C;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & IN_1) != IN_1) return "v2";
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) in_7 = b;
    if (__get_cpuid(0x80000001, &a, &b, &c, &d)) extended = c;
    constexpr unsigned BMI1 = 1u << 3, AVX2 = 1u << 5, BMI2 = 1u << 8, IN_7 = BMI1 | AVX2 | BMI2, LZCNT = 1u << 5;
    if ((in_7 & IN_7) != IN_7 || !(extended & LZCNT)) return "v2";
    unsigned saved, high;  // registers that the operating system saves: of SSE and AVX, and of AVX-512
    __asm__("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
    if ((saved & 0x06) != 0x06) return "v2";
    constexpr unsigned AVX512 = 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31;  // F, DQ, CD, BW and VL
    return (in_7 & AVX512) == AVX512 && (saved & 0xE6) == 0xE6 ? "v4" : "v3";
#else
    return "generic";
#endif
}

PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_processor", nullptr, 0, nullptr, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__processor() {
    PyObject* module = PyModule_Create(&definition);
    if (module != nullptr && PyModule_AddStringConstant(module, "LEVEL", best_level()) < 0) {
        Py_DECREF(module);
        return nullptr;
    }
    return module;
}
