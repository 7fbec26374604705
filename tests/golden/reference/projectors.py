# SPDX-License-Identifier: MIT
"""Normative reference of the projection operators, in NumPy float64. Slow on purpose; the library must agree with it.

Layout      half spectrum (RFFT): [..., N//2+1], last axis kx = 0..N//2, other axes in FFT order; DC at index 0, real-space origin at element 0.
            Frequency of index i on a full axis of length N: i for i <= N//2, else i-N (even N: the Nyquist row is +N/2). Odd N is allowed.
            No scaling anywhere.
Position    q = M (oversampling k), components in the order (x = column, y = row, z = depth). M is used as given: it maps projection
            frequencies to reconstruction frequencies (a rotation or any 2x2 / 3x3 matrix). For 3D -> 2D, k = (kx, ky, 0).
Sampling    F(q) = sum_taps w(q - tap) V(tap), separable kernel, over the infinite grid on which V is continued by
            Hermitian symmetry V(-t) = conj V(t) and by periodicity V(t + N e) = V(t) on every axis.
Cutoff      a sample is computed when |k| <= radius (projection frequencies, inclusive); default min(n/2, N/(2 oversampling)). Else 0.
Shift       s in pixels of the projection box, order as the array axes (depth,) row, column; factor exp(-2 pi i k.s/n): positive moves to higher index.
project     P(k) = F(M os k) exp(-2 pi i k.s/n) for every stored k.
backproject adjoint of project in the inner product over the full Hermitian spectrum:  <project V, P>_full = <V, backproject P>_full, every
            stored element counted with its multiplicity (1 on column 0 and, for even N, on column N/2; 2 elsewhere). Equivalently: each
            stored sample inserts a = (m/2) P conj(phase) at +k and conj(a) at -k, and the stored half of the sum is kept.
weights     real weights W(k) go the same way (no phase) into a real weight volume, with kernel values as they are ("signed") or absolute.
gradients   exact derivatives of L with respect to the stored arrays; a cotangent is g = dL/dRe + i dL/dIm of each stored element.
            skip_redundant=True instead leaves out the samples on column 0 whose mate is stored too (negative rows), the rule of the
            torch-projectors paper, section 2.3: right when L is written on the full spectrum and g counts every frequency once.
"""
import numpy as np

def linear(x):   # w(x), w'(x); tap distance x, support |x| < 1
    a = np.abs(x); return np.where(a < 1, 1 - a, 0.), np.where(a < 1, -np.where(x >= 0, 1., -1.), 0.)
def catmull_rom(x):
    a = np.abs(x); s = np.sign(x)
    w = np.where(a <= 1, 1.5*a**3 - 2.5*a**2 + 1, np.where(a < 2, -.5*a**3 + 2.5*a**2 - 4*a + 2, 0.))
    d = np.where(a <= 1, 4.5*a**2 - 5*a, np.where(a < 2, -1.5*a**2 + 5*a - 4, 0.)) * s
    return w, d
def bspline3(x):  # not interpolating: divide the image by sinc^4 per axis (exact roll-off correction)
    a = np.abs(x); s = np.sign(x)
    w = np.where(a <= 1, 2/3 - a**2 + a**3/2, np.where(a < 2, (2 - a)**3/6, 0.))
    d = np.where(a <= 1, -2*a + 1.5*a**2, np.where(a < 2, -(2 - a)**2/2, 0.)) * s
    return w, d
KERNELS = {'linear': (linear, range(0, 2)), 'catmull_rom': (catmull_rom, range(-1, 3)), 'bspline3': (bspline3, range(-1, 3))}

def freqs(n): i = np.arange(n); return np.where(i <= n//2, i, i - n)
def stored(shape):  # frequencies of every stored element, components (x, y[, z]); shape = full sizes, row-major
    ax = [freqs(n) for n in shape[:-1]] + [np.arange(shape[-1]//2 + 1)]
    g = np.meshgrid(*ax, indexing='ij'); return np.stack(g[::-1], -1).astype(float)
def multiplicity(shape):
    m = np.full(shape[-1]//2 + 1, 2.); m[0] = 1
    if shape[-1] % 2 == 0: m[-1] = 1
    return np.broadcast_to(m, tuple(shape[:-1]) + (shape[-1]//2 + 1,))
def address(t, shape):  # integer taps (x, y[, z]) -> flat index in the half spectrum, conj flag
    t = np.stack([np.mod(t[..., d], n) for d, n in enumerate(shape[::-1])], -1)
    conj = t[..., 0] > shape[-1]//2
    t = np.where(conj[..., None], np.stack([np.mod(-t[..., d], n) for d, n in enumerate(shape[::-1])], -1), t)
    idx = np.zeros(t.shape[:-1], int)
    for d, n in zip(range(t.shape[-1] - 1, -1, -1), tuple(shape[:-1]) + (shape[-1]//2 + 1,)): idx = idx*n + t[..., d]
    return idx, conj
def taps(q, kernel):  # yields tap coordinates, weight, gradient of the weight (components x, y[, z])
    fn, rng = KERNELS[kernel]; base = np.floor(q).astype(int); D = q.shape[-1]
    for off in np.ndindex(*(len(rng),)*D):
        t = base + np.array([rng[o] for o in off]); wd = [fn(q[..., d] - t[..., d]) for d in range(D)]
        w = np.prod([x[0] for x in wd], 0)
        g = np.stack([np.prod([wd[e][1] if e == d else wd[e][0] for e in range(D)], 0) for d in range(D)], -1)
        yield t, w, g
def setup(n, N, M, s, oversampling, cutoff):  # -> k, extended k, q, inside, phase
    k = stored(n); c = min(min(n)/2, min(N)/(2*oversampling)) if cutoff is None else cutoff
    ke = np.concatenate([k, np.zeros(k.shape[:-1] + (len(N) - len(n),))], -1)*oversampling
    q = ke @ np.asarray(M)[:len(N), :len(N)].T
    phase = np.ones(k.shape[:-1], complex)
    if s is not None:
        for d in range(len(n)): phase = phase*np.exp(-2j*np.pi*k[..., d]*s[::-1][d]/n[::-1][d])
    return k, ke, q, (k**2).sum(-1) <= c*c*(1 + 1e-12), phase
def sample(V, q, N, kernel):  # F(q) and its gradient with respect to q
    f = np.zeros(q.shape[:-1], complex); df = np.zeros(q.shape, complex); v = V.reshape(-1)
    for t, w, g in taps(q, kernel):
        i, c = address(t, N); x = np.where(c, v[i].conj(), v[i]); f += w*x; df += g*x[..., None]
    return f, df

def outer(a, b): return a.reshape(-1, a.shape[-1]).T @ b.reshape(-1, b.shape[-1])
def project(V, N, M, s, n, kernel, oversampling=1., cutoff=None):
    k, ke, q, inside, ph = setup(n, N, M, s, oversampling, cutoff); f, _ = sample(V, q, N, kernel); return np.where(inside, f*ph, 0)
def project_gradients(V, N, M, s, n, g, kernel, oversampling=1., cutoff=None, skip_redundant=False):
    k, ke, q, inside, ph = setup(n, N, M, s, oversampling, cutoff)
    use = inside & ~(redundant(n) if skip_redundant else False); g = np.where(use, g, 0); gp = g*ph.conj()
    f, df = sample(V, q, N, kernel); gv = np.zeros(V.size, complex)
    for t, w, _ in taps(q, kernel):
        i, c = address(t, N); np.add.at(gv, i.ravel(), (w*np.where(c, gp.conj(), gp)).ravel())
    gM = outer((gp[..., None].conj()*df).real, ke)
    return gv.reshape(V.shape), gM, shift_gradient(g, f*ph, k, n)
def shift_gradient(g, P, k, n):  # sum Re(conj(g) dP/ds), order (depth,) row, column
    return np.array([((g.conj()*(-2j*np.pi*k[..., d]/n[::-1][d])*P).real).sum() for d in range(len(n))])[::-1]
def redundant(n):  # column 0, negative frequency on the slowest axis that is not self-conjugate
    k = stored(n); sign = np.zeros(k.shape[:-1])
    for d in range(len(n) - 1, 0, -1):
        x = np.where((n[::-1][d] % 2 == 0) & (k[..., d] == n[::-1][d]//2), 0, k[..., d]); sign = np.where(sign == 0, np.sign(x), sign)
    return (k[..., 0] == 0) & (sign < 0)

def backproject(P, N, M, s, n, kernel, oversampling=1., cutoff=None, weights=None, absolute=True):
    k, ke, q, inside, ph = setup(n, N, M, s, oversampling, cutoff); m = multiplicity(n)/2
    size = int(np.prod(N[:-1]))*(N[-1]//2 + 1); data = np.zeros(size, complex); wt = np.zeros(size)
    a = np.where(inside, m*P*ph.conj(), 0); b = None if weights is None else np.where(inside, m*weights, 0)
    for sgn in (1, -1):
        for t, w, _ in taps(q, kernel):
            i, c = address(sgn*t, N); keep = ~c
            np.add.at(data, i[keep], (w*(a if sgn > 0 else a.conj()))[keep])
            if b is not None: np.add.at(wt, i[keep], ((np.abs(w) if absolute else w)*b)[keep])
    shape = tuple(N[:-1]) + (N[-1]//2 + 1,); return data.reshape(shape), (None if b is None else wt.reshape(shape))
def backproject_gradients(P, N, M, s, n, gdata, kernel, oversampling=1., cutoff=None, weights=None, gweight=None, absolute=True):
    k, ke, q, inside, ph = setup(n, N, M, s, oversampling, cutoff); m = multiplicity(n)/2; gd = gdata.reshape(-1)
    h = np.zeros(q.shape[:-1], complex); dh = np.zeros(q.shape, complex); r = np.zeros(q.shape[:-1]); dr = np.zeros(q.shape)
    for sgn in (1, -1):
        for t, w, g in taps(q, kernel):
            i, c = address(sgn*t, N); x = np.where(c, 0, gd[i]); x = x if sgn > 0 else x.conj(); h += w*x; dh += g*x[..., None]
            if weights is not None:
                y = np.where(c, 0., gweight.reshape(-1)[i]); r += (np.abs(w) if absolute else w)*y
                dr += ((np.sign(w)[..., None] if absolute else 1.)*g)*y[..., None]
    gP = np.where(inside, m*h*ph, 0); a = np.where(inside, m*P*ph.conj(), 0)
    gM = outer((dh.conj()*a[..., None]).real, ke); gW = None
    if weights is not None: gW = np.where(inside, m*r, 0.); gM = gM + outer(np.where(inside, m*weights, 0.)[..., None]*dr, ke)
    gs = np.array([((h.conj()*(2j*np.pi*k[..., d]/n[::-1][d])*a).real).sum() for d in range(len(n))])[::-1]
    return gP, gM, gs, gW

if __name__ == '__main__':  # self-test: finite differences, adjointness, brute-force agreement with a real-space transform
    rng = np.random.default_rng(1); C = lambda *sh: rng.normal(size=sh) + 1j*rng.normal(size=sh)
    half = lambda N: tuple(N[:-1]) + (N[-1]//2 + 1,)
    for n, N, os in [((8, 8), (8, 8), 1.), ((6, 6), (12, 12), 2.), ((7, 7), (7, 7, 7), 1.), ((8, 8), (12, 12, 12), 1.5), ((5, 6), (8, 7, 6), 1.), ((6, 6, 6), (6, 6, 6), 1.)]:
        for kern in KERNELS:
            D = len(N); M = np.linalg.qr(rng.normal(size=(D, D)))[0] + .05*rng.normal(size=(D, D)); s = rng.normal(size=len(n)); cut = min(n)/2 - .3
            V, P, W = C(*half(N)), C(*half(n)), rng.uniform(.5, 1.5, half(n)); g, gd, gw = C(*half(n)), C(*half(N)), rng.normal(size=half(N)); e = 1e-6
            L = lambda V, M, s: (project(V, N, M, s, n, kern, os, cut)*g.conj()).real.sum()
            gv, gM, gs = project_gradients(V, N, M, s, n, g, kern, os, cut); dV, dM, ds = C(*half(N)), rng.normal(size=(D, D)), rng.normal(size=len(n))
            fd = (L(V + e*dV, M + e*dM, s + e*ds) - L(V - e*dV, M - e*dM, s - e*ds))/(2*e); an = (gv.conj()*dV).real.sum() + (gM*dM).sum() + (gs*ds).sum()
            assert abs(fd - an) < 2e-4*max(1, abs(an)), ('project', n, N, kern, fd, an)
            for ab in (True, False):
                def L2(P, W, M, s):
                    d, w = backproject(P, N, M, s, n, kern, os, cut, W, ab); return (d*gd.conj()).real.sum() + (w*gw).sum()
                gP, gM, gs, gW = backproject_gradients(P, N, M, s, n, gd, kern, os, cut, W, gw, ab); dP, dW = C(*half(n)), rng.normal(size=half(n))
                fd = (L2(P + e*dP, W + e*dW, M + e*dM, s + e*ds) - L2(P - e*dP, W - e*dW, M - e*dM, s - e*ds))/(2*e)
                an = (gP.conj()*dP).real.sum() + (gW*dW).sum() + (gM*dM).sum() + (gs*ds).sum()
                assert abs(fd - an) < 2e-4*max(1, abs(an)), ('backproject', n, N, kern, ab, fd, an)
            v = rng.normal(size=N); V = np.fft.rfftn(v); B, _ = backproject(P, N, M, s, n, kern, os, cut)   # full-spectrum adjointness
            l = (multiplicity(n)*(project(V, N, M, s, n, kern, os, cut)*P.conj()).real).sum(); r = (multiplicity(N)*(V*B.conj()).real).sum()
            assert abs(l - r) < 1e-10*np.linalg.norm(V)*np.linalg.norm(P), ('adjoint', n, N, kern, l, r)
    print('reference self-test passed')
