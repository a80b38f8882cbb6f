/* Complex numbers for kernels: pycuda::complex<float> and <double>, as NumPy's complex64 and
   complex128 lie in memory. */
#ifndef GPUKERN_PYCUDA_COMPLEX_HPP
#define GPUKERN_PYCUDA_COMPLEX_HPP

namespace pycuda {

template <class T>
struct alignas(2 * sizeof(T)) complex {
    typedef T value_type;
    T _M_re, _M_im;

    complex() = default; /* complex<T>() is zero, and shared memory may hold arrays of them */
    __host__ __device__ constexpr complex(T re, T im = T()) : _M_re(re), _M_im(im) {}
    template <class U>
    __host__ __device__ constexpr complex(const complex<U> &z)
        : _M_re(T(z._M_re)), _M_im(T(z._M_im)) {}

    __host__ __device__ constexpr T real() const { return _M_re; }
    __host__ __device__ constexpr T imag() const { return _M_im; }

    __host__ __device__ complex &operator+=(const complex &z) { return *this = *this + z; }
    __host__ __device__ complex &operator-=(const complex &z) { return *this = *this - z; }
    __host__ __device__ complex &operator*=(const complex &z) { return *this = *this * z; }
    __host__ __device__ complex &operator/=(const complex &z) { return *this = *this / z; }

    friend __host__ __device__ complex operator+(const complex &a, const complex &b) {
        return complex(a._M_re + b._M_re, a._M_im + b._M_im);
    }
    friend __host__ __device__ complex operator-(const complex &a, const complex &b) {
        return complex(a._M_re - b._M_re, a._M_im - b._M_im);
    }
    friend __host__ __device__ complex operator*(const complex &a, const complex &b) {
        return complex(a._M_re * b._M_re - a._M_im * b._M_im,
                       a._M_re * b._M_im + a._M_im * b._M_re);
    }
    /* By the larger part of the divisor, so that nothing overflows on the way. */
    friend __host__ __device__ complex operator/(const complex &a, const complex &b) {
        if (::fabs(b._M_re) >= ::fabs(b._M_im)) {
            T ratio = b._M_im / b._M_re, by = b._M_re + b._M_im * ratio;
            return complex((a._M_re + a._M_im * ratio) / by, (a._M_im - a._M_re * ratio) / by);
        }
        T ratio = b._M_re / b._M_im, by = b._M_re * ratio + b._M_im;
        return complex((a._M_re * ratio + a._M_im) / by, (a._M_im * ratio - a._M_re) / by);
    }
    friend __host__ __device__ complex operator-(const complex &z) {
        return complex(-z._M_re, -z._M_im);
    }
    friend __host__ __device__ complex operator+(const complex &z) { return z; }
    friend __host__ __device__ bool operator==(const complex &a, const complex &b) {
        return a._M_re == b._M_re && a._M_im == b._M_im;
    }
    friend __host__ __device__ bool operator!=(const complex &a, const complex &b) {
        return !(a == b);
    }
};

template <class T> __host__ __device__ T real(const complex<T> &z) { return z._M_re; }
template <class T> __host__ __device__ T imag(const complex<T> &z) { return z._M_im; }
template <class T> __host__ __device__ complex<T> conj(const complex<T> &z) {
    return complex<T>(z._M_re, -z._M_im);
}
template <class T> __host__ __device__ T norm(const complex<T> &z) {
    return z._M_re * z._M_re + z._M_im * z._M_im;
}
template <class T> __host__ __device__ T abs(const complex<T> &z) {
    return ::hypot(z._M_re, z._M_im);
}
template <class T> __host__ __device__ T arg(const complex<T> &z) {
    return ::atan2(z._M_im, z._M_re);
}
template <class T> __host__ __device__ complex<T> polar(T length, T angle = T()) {
    return complex<T>(length * ::cos(angle), length * ::sin(angle));
}
template <class T> __host__ __device__ complex<T> exp(const complex<T> &z) {
    return polar<T>(T(::exp(z._M_re)), z._M_im);
}
template <class T> __host__ __device__ complex<T> log(const complex<T> &z) {
    return complex<T>(::log(abs(z)), arg(z));
}
template <class T> __host__ __device__ complex<T> log10(const complex<T> &z) {
    return log(z) / complex<T>(T(2.302585092994045684));
}
template <class T> __host__ __device__ complex<T> sqrt(const complex<T> &z) {
    T length = abs(z);
    if (length == T())
        return complex<T>();
    T half = ::sqrt((length + ::fabs(z._M_re)) / T(2)), other = ::fabs(z._M_im) / (T(2) * half);
    T re = z._M_re >= T() ? half : other, im = z._M_re >= T() ? other : half;
    return complex<T>(re, ::copysign(im, z._M_im));
}
template <class T> __host__ __device__ complex<T> sinh(const complex<T> &z) {
    return complex<T>(::sinh(z._M_re) * ::cos(z._M_im), ::cosh(z._M_re) * ::sin(z._M_im));
}
template <class T> __host__ __device__ complex<T> cosh(const complex<T> &z) {
    return complex<T>(::cosh(z._M_re) * ::cos(z._M_im), ::sinh(z._M_re) * ::sin(z._M_im));
}
template <class T> __host__ __device__ complex<T> tanh(const complex<T> &z) {
    return sinh(z) / cosh(z);
}
template <class T> __host__ __device__ complex<T> sin(const complex<T> &z) {
    return complex<T>(::sin(z._M_re) * ::cosh(z._M_im), ::cos(z._M_re) * ::sinh(z._M_im));
}
template <class T> __host__ __device__ complex<T> cos(const complex<T> &z) {
    return complex<T>(::cos(z._M_re) * ::cosh(z._M_im), -::sin(z._M_re) * ::sinh(z._M_im));
}
template <class T> __host__ __device__ complex<T> tan(const complex<T> &z) {
    return sin(z) / cos(z);
}
template <class T> __host__ __device__ complex<T> pow(const complex<T> &z, const complex<T> &to) {
    if (z == complex<T>())
        return to == complex<T>() ? complex<T>(T(1)) : complex<T>();
    return exp(to * log(z));
}
template <class T> __host__ __device__ complex<T> pow(const complex<T> &z, const T &to) {
    return pow(z, complex<T>(to));
}
template <class T> __host__ __device__ complex<T> pow(const T &x, const complex<T> &to) {
    return pow(complex<T>(x), to);
}

/* Beside complex numbers, numbers of any kind. */
template <class T> struct just {
    typedef T type;
};
#define GPUKERN_PYCUDA_WITH_REAL(op)                                                               \
    template <class T>                                                                             \
    __host__ __device__ complex<T> operator op(const complex<T> &a, typename just<T>::type b) {    \
        return a op complex<T>(b);                                                                 \
    }                                                                                              \
    template <class T>                                                                             \
    __host__ __device__ complex<T> operator op(typename just<T>::type a, const complex<T> &b) {    \
        return complex<T>(a) op b;                                                                 \
    }
GPUKERN_PYCUDA_WITH_REAL(+)
GPUKERN_PYCUDA_WITH_REAL(-)
GPUKERN_PYCUDA_WITH_REAL(*)
GPUKERN_PYCUDA_WITH_REAL(/)
#undef GPUKERN_PYCUDA_WITH_REAL

} /* namespace pycuda */

#endif
