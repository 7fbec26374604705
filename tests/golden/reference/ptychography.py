# SPDX-License-Identifier: MIT
"""Normative reference of ptychography, in NumPy double precision. Definitions only, slow on purpose; the library must agree with it.
`python3 ptychography.py` runs the self-test: a line per check, exit status 1 if one fails.

Sizes       N patterns, L probe modes, S slices, C relaxation modes; object [S, rows, columns], probe [L, m, m], patterns [N, n, n], n >= m.
Units       positions, windows, shifts: pixels. wavelength, pixel size, distances: one length unit. Intensities: the unit of the patterns.
Order       axes are (row, column); frequency 0 lies at [0, 0] of every spectrum and pattern; a window is named by its first pixel.
DFT         forward sum_r x(r) exp(-2 pi i k r / n), no factor; IDFT with 1 / n^2. Frequencies: see `frequencies` (Nyquist is -n/2).
Gradients   of a real L: G_z = dL/dRe z + i dL/dIm z, so dL = Re sum conj(G_z) dz, and G_x = A^H G_y for a linear y = A x.

Model, pattern j, mode l, detector pixel k; what is not given drops out:
    y_j = c_j + f_j                                          position = whole corner + fraction                        place
    q_jl = p_l + [l = 0] sum_c a_jc v_c                      a probe of its own for every pattern                      relaxed_probe
    u_jl1(r) = q_jl(r - f_j)                                 Fourier shift of the probe on its window                  shift
    psi_jls(r) = O_s(c_j + r) u_jls(r),  u_jl,s+1 = free space(psi_jls)                                                exit_waves
    Psi_jl = far field of psi_jlS, or near field of psi_jlS(r + f_j)                                                   detector_waves
    I_jk = h_j sum_l |Psi_jlk|^2 + B_k                       factor of the pattern, background of the pixel            evaluate
    J = I C / mean(I), t = measured C / mean(measured), or J = I, t = measured; L = 1 / (N n^2) sum_jk w_jk l(J, t)    compare
Names as in the library's options: loss 'LeastSquares', 'Amplitude', 'Poisson'; scale 'PerPattern', 'None'.

Sources (equations restated in these conventions)
    exit wave, object and probe gradients  Maiden, Rodenburg, Ultramicroscopy 109 (2009) 1256
    incoherent modes                       Thibault, Menzel, Nature 494 (2013) 68
    losses as likelihoods                  Thibault, Guizar-Sicairos, New J. Phys. 14 (2012) 063004
    position gradient                      Guizar-Sicairos, Fienup, Opt. Express 16 (2008) 7264; Odstrcil, Menzel, Guizar-Sicairos, Opt. Express 26 (2018) 3108
    orthogonal probe relaxation            Odstrcil et al., Opt. Express 24 (2016) 8360; Odstrcil, Menzel, Guizar-Sicairos (2018)
    multislice                             Maiden, Humphry, Rodenburg, J. Opt. Soc. Am. A 29 (2012) 1606
"""
import numpy as np


def fft(x, n=None): return np.fft.fft2(x, None if n is None else (n, n), (-2, -1))
def ifft(x): return np.fft.ifft2(x, axes=(-2, -1))
def frequencies(n):
    """Signed frequency of every index of a DFT over n pixels, in cycles per n pixels: i for 2 i < n, else i - n.
    For even n the Nyquist row and column are -n/2, nowhere +n/2 and nowhere an average of both."""
    i = np.arange(n); return np.where(2*i < n, i, i - n)


# ------------------------------------------------------------------------------------------------ positions and the shift of the probe
def place(positions, object_shape, m):
    """Corners c [N, 2] (whole numbers) and fractions f [N, 2], pixels, of positions y [N, 2] = c + f: the window is the nearest one,
    c = floor(y + 1/2), -1/2 <= f < 1/2. ValueError unless 0 <= c <= object_shape - m on both axes, object_shape = (rows, columns)."""
    y = np.asarray(positions, float); c = np.floor(y + .5)
    if not ((c >= 0) & (c <= np.array(object_shape) - m)).all(): raise ValueError('a window leaves the object')
    return c.astype(int), y - c

def shift_phase(m, f):
    """exp(-2 pi i (k_row f_row + k_column f_column) / m) [m, m], k = frequencies(m). At the Nyquist row of an even m it is exp(+i pi f_row):
    of modulus 1 as everywhere, so the shift is unitary, shifts add up, a whole f is a cyclic roll; a real probe becomes complex there."""
    k = frequencies(m); return np.exp(-2j*np.pi*k*f[0]/m)[:, None]*np.exp(-2j*np.pi*k*f[1]/m)[None, :]

def shift(p, f):
    """p(r - f) [..., m, m]: p moved by f = (row, column) pixels towards higher indices, as the trigonometric polynomial of its m x m
    pixels (period m). The adjoint is shift(G, -f)."""
    return ifft(fft(p)*shift_phase(p.shape[-1], f))

def position_gradient(q, f, G):
    """dL/df (row, column), per pixel, from the probe before its shift q [L, m, m] and G [L, m, m], the gradient with respect to shift(q, f).

    With Q = DFT(shift(q, f)), shift(q, f + df) changes by IDFT(-2 pi i k_a / m Q) df_a, so
        dL/df_a = sum_l sum_r Re conj(G_l(r)) IDFT(-2 pi i k_a / m Q_l)(r) = 2 pi / m^3 sum_l sum_k k_a Im( conj(DFT(G_l)(k)) Q_l(k) ),
    k = frequencies(m): Nyquist enters with -m/2, as in the shift. DFT(G_l) conj(shift_phase) and DFT(q) do as well as DFT(G_l) and Q.

    Since y = c + f this is dL/dy with the corner c held. L as a function of f is smooth for every real f, also outside [-1/2, 1/2), and
    has period m; f = 1 rolls the probe by a pixel within its window, it does not move the window. With the rule of `place` L jumps at
    half pixels: (c, +1/2) and (c + 1, -1/2) give the same exit wave, one pixel apart, but for its first row (or column), which sees the
    object at c + m instead of c. The jump vanishes with the shifted probe on that row; the gradient is that of the branch in use.
    In the near field the wave is also moved back by f (detector_waves), which adds -position_gradient(Psi, 0, G_Psi)."""
    k, m = frequencies(q.shape[-1]), q.shape[-1]; z = fft(G).conj()*fft(q)*shift_phase(m, f)
    return 2*np.pi/m**3*np.array([(k[:, None]*z.imag).sum(), (k[None, :]*z.imag).sum()])

def relaxed_probe(p, a, v):
    """Probe of one pattern [L, m, m]: p with sum_c a_c v_c added to its first mode; a [C] complex, v [C, m, m].
    Gradients from G, that with respect to the result's first mode: G_a_c = sum_r conj(v_c) G, G_v_c = sum_j conj(a_jc) G_j, G_p as
    without relaxation. Real coefficients have dL/da = Re G_a. That the v are orthonormal (and orthogonal to p) is kept by the solver and
    is no part of the model. Orthogonal probe relaxation: Odstrcil et al. (2016)."""
    q = p.copy(); q[0] += np.tensordot(a, v, 1); return q


# ------------------------------------------------------------------------------------------------------------- waves, and their adjoints
def free_space(m, wavelength, pixel_size, distance):
    """Transfer function H [m, m] = exp(-i pi wavelength distance |k|^2), k = frequencies(m) / (m pixel_size) in cycles per length: the
    angular spectrum exp(2 pi i distance sqrt(wavelength^-2 - |k|^2)) without its constant phase, to lowest order in wavelength k.
    distance > 0 is downstream: waves go as exp(+2 pi i z / wavelength), exp(-i pi |x|^2 / (wavelength R)) comes to its focus at R, and
    propagation by z lowers the defocus of `aberrated_probe` by z. It is exp(-i pi |k|^2 / F) in cycles per window, the near field of
    `detector_waves`, F = (m pixel_size)^2 / (wavelength distance). No band limit; periodic on the window."""
    k = frequencies(m)/(m*pixel_size); return np.exp(-1j*np.pi*wavelength*distance*(k[:, None]**2 + k[None, :]**2))

def exit_waves(O, u, H):
    """Waves behind the last slice psi [L, m, m], and the list of waves incident on every slice. O [S, m, m]: the object in the window,
    u [L, m, m]: the probe on the first slice, H [S - 1, m, m]: free_space from each slice to the next.
        psi_s = O_s u_s,  u_{s+1} = IDFT(H_s DFT(psi_s)).   Maiden, Humphry, Rodenburg (2012); S = 1 is the ordinary exit wave."""
    incident = [u]
    for s in range(len(O) - 1): incident.append(ifft(H[s]*fft(O[s]*incident[s])))
    return O[-1]*incident[-1], incident

def exit_waves_adjoint(O, incident, H, G):
    """Gradients with respect to O [S, m, m] and to the probe on the first slice [L, m, m], from G [L, m, m] with respect to psi, backwards:
        G_O_s = sum_l conj(u_ls) G_ls,  G_u_s = conj(O_s) G_s,  G_{s-1} = IDFT(conj(H_{s-1}) DFT(G_u_s))."""
    GO = np.zeros_like(O)
    for s in range(len(O) - 1, -1, -1):
        GO[s] = (incident[s].conj()*G).sum(0); G = O[s].conj()*G
        if s > 0: G = ifft(H[s - 1].conj()*fft(G))
    return GO, G

def near_field(n, fresnel_number, f=(0., 0.)):
    """Transfer function [n, n] exp(-i pi |k|^2 / F + 2 pi i k f / n): F = window^2 / (wavelength distance), k in cycles per window."""
    k = frequencies(n); return np.exp(-1j*np.pi*(k[:, None]**2 + k[None, :]**2)/fresnel_number)*shift_phase(n, f).conj()

def detector_waves(psi, n, fresnel_number=None, f=(0., 0.)):
    """Psi [..., n, n] of psi [..., m, m].
    Far field: DFT of psi in the corner of n x n zeros, not normalised: sum_k |Psi|^2 = n^2 sum_r |psi|^2.
    Near field (n = m): IDFT(near_field DFT(psi)), which keeps the energy. f is the fraction by which the probe was moved in its window: the
    wave is moved back by it, because beam and detector stand still while the object moves. A moved wave only turns the phases of a far
    field, but it moves a near field: with f = 0 for every pattern (frame='window' of `evaluate`) patterns lie up to half a pixel off."""
    return fft(psi, n) if fresnel_number is None else ifft(near_field(n, fresnel_number, f)*fft(psi))

def detector_waves_adjoint(G, m, fresnel_number=None, f=(0., 0.)):
    """The adjoint (not the inverse): n^2 IDFT cropped to the corner, or IDFT(conj(H) DFT(G))."""
    n = G.shape[-1]
    return n*n*ifft(G)[..., :m, :m] if fresnel_number is None else ifft(near_field(n, fresnel_number, f).conj()*fft(G))


# -------------------------------------------------------------------------------------------------------------------- patterns and losses
def pattern_term(loss, J, t, b):
    """l(J, t) and dl/dJ. LeastSquares (J - t)^2; Amplitude (sqrt J - sqrt t)^2, slope 0 at J = 0; Poisson, half the deviance,
    J + b - t + t log(t / (J + b)) with 0 log 0 = 0, b > 0 in units of J."""
    if loss == 'LeastSquares': return (J - t)**2, 2*(J - t)
    if loss == 'Amplitude':
        a, root = np.sqrt(J), np.sqrt(t); return (a - root)**2, np.where(a > 0, 1 - root/np.where(a > 0, a, 1), 0)
    e = J + b; return e - t + t*np.log(np.where(t > 0, t, e)/e), 1 - t/e

def compare(I, measured, w, loss, scale, counts, background):
    """sum_k w l(J, t) of one pattern and its derivative with respect to I; all [n, n]. w >= 0: weights or a mask; where w = 0 the measured
    value does not matter, not even NaN. mean = sum_k w x / sum_k w.
        PerPattern: J = I C / mean(I), t = measured C / mean(measured): d/dI = w s (l' - c), s = C / mean(I), c = sum(w l' I) / sum(w I).
        None: J = I, t = measured, s = 1, c = 0.
    A pattern without counts (sum w measured = 0) has weight 0; N still counts it. Without light (PerPattern, sum w I = 0) J = 0, s = 0."""
    t = np.where(w > 0, measured, 0.); total = (w*I).sum(); s = 1.
    if not (w*t).sum() > 0: return 0., np.zeros_like(I)
    if scale == 'PerPattern': s = counts*w.sum()/total if total else 0.; t = t*counts*w.sum()/(w*t).sum()
    value, slope = pattern_term(loss, s*I, t, background)
    c = (w*slope*I).sum()/total if scale == 'PerPattern' and total else 0.
    return (w*value).sum(), w*s*(slope - c)

def evaluate(object, probe, fractions, *, corners, measured, weights=None, loss='LeastSquares', scale='PerPattern', counts=1., background=1e-3,
             fresnel_number=None, frame='beam', transfers=(), coefficients=None, relaxation=None, factors=None, detector_background=None):
    """Loss and every gradient.
    object [S, rows, columns], probe [L, m, m] complex; fractions [N, 2] pixels, corners [N, 2] whole; measured [N, n, n]; weights [n, n] or
    [N, n, n]; counts C; background b of Poisson; fresnel_number: near field, in the frame of the beam or of the 'window' (detector_waves);
    transfers [S - 1, m, m] of free_space; coefficients a [N, C], relaxation v [C, m, m]; factors h [N] >= 0;
    detector_background B [n, n] >= 0, in the unit of I before scaling, the same for all patterns.
    -> dict: loss, pattern_losses [N] (their sum is the loss), intensities [N, n, n] (I, not scaled), exit_waves [N, L, m, m],
       grad_exit_waves, and gradients {argument: array of its shape} of object, probe, fractions (dL/dy_j with the corner held),
       coefficients, relaxation, factors, detector_background where given.
    With dL/dI from `compare`, divided by N n^2:
        G_Psi_jl = 2 h_j dL/dI Psi_jl,  dL/dh_j = sum_k dL/dI_jk sum_l |Psi_jlk|^2,  dL/dB_k = sum_j dL/dI_jk,
    G_psi by detector_waves_adjoint, slices and probe by exit_waves_adjoint, G_q_jl = shift(., -f_j), G_p_l = sum_j G_q_jl.
    PerPattern without B: L does not depend on h (its gradient is 0), nor on the scales of object and probe (Re <psi_j, G_psi_j> = 0)."""
    O, p, f = np.array(object, complex), np.array(probe, complex), np.asarray(fractions, float); patterns = np.asarray(measured, float)
    L, m, N, n = len(p), p.shape[-1], len(patterns), patterns.shape[-1]; norm = 1/(N*n*n)
    w = np.broadcast_to(1. if weights is None else np.asarray(weights, float), patterns.shape)
    given = dict(coefficients=coefficients, relaxation=relaxation, factors=factors, detector_background=detector_background)
    g = {k: np.zeros(np.shape(x), complex if k in ('coefficients', 'relaxation') else float) for k, x in given.items() if x is not None}
    g.update(object=np.zeros_like(O), probe=np.zeros_like(p), fractions=np.zeros((N, 2)))
    r = dict(gradients=g, pattern_losses=np.zeros(N), intensities=np.zeros((N, n, n)), exit_waves=np.zeros((N, L, m, m), complex),
             grad_exit_waves=np.zeros((N, L, m, m), complex))
    for j, (y, x) in enumerate(corners):
        window = np.s_[:, y:y + m, x:x + m]; q = p if relaxation is None else relaxed_probe(p, coefficients[j], relaxation)
        psi, incident = exit_waves(O[window], shift(q, f[j]), transfers); back = f[j] if frame == 'beam' else np.zeros(2)
        Psi = detector_waves(psi, n, fresnel_number, back)
        energy = (np.abs(Psi)**2).sum(0); h = 1. if factors is None else factors[j]
        I = h*energy + (0. if detector_background is None else detector_background)
        value, dI = compare(I, patterns[j], w[j], loss, scale, counts, background); dI = norm*dI
        G = detector_waves_adjoint(2*h*dI*Psi, m, fresnel_number, back); GO, Gu = exit_waves_adjoint(O[window], incident, transfers, G)
        Gq = shift(Gu, -f[j]); g['object'][window] += GO; g['probe'] += Gq; g['fractions'][j] = position_gradient(q, f[j], Gu)
        if fresnel_number is not None and frame == 'beam': g['fractions'][j] -= position_gradient(Psi, (0., 0.), 2*h*dI*Psi)
        if relaxation is not None:
            g['coefficients'][j] = (np.conj(relaxation)*Gq[0]).sum((1, 2)); g['relaxation'] += np.conj(coefficients[j])[:, None, None]*Gq[0]
        if factors is not None: g['factors'][j] = (dI*energy).sum()
        if detector_background is not None: g['detector_background'] += dI
        r['pattern_losses'][j], r['intensities'][j], r['exit_waves'][j], r['grad_exit_waves'][j] = norm*value, I, psi, G
    r['loss'] = r['pattern_losses'].sum(); return r


# ------------------------------------------------------------------------------------------------------- parametrised object and probe
def complex_object(a, phi): return a*np.exp(1j*phi)
def complex_object_gradients(a, phi, G):
    """dL/da = Re u, dL/dphi = a Im u with u = exp(-i phi) G, for O = a exp(i phi)."""
    u = np.exp(-1j*phi)*G; return u.real, a*u.imag

def aperture(parameters, n, wavelength, pixel_size, convergence_angle, cs_to_length=1e6):
    """A [n, n], chi [n, n], dA/d(smoothness) and the four derivatives of chi of the lens with parameters (defocus, Cs, astigmatism M, its
    angle, smoothness a); lengths in one unit, Cs in that divided by cs_to_length. k = frequencies(n) / (n pixel_size), theta from the row axis:
        chi = pi wavelength defocus k^2 + pi/2 wavelength^3 Cs k^4 + pi wavelength M k^2 cos 2(theta - angle),
        A = 1 / (1 + exp(-(kmax - k) / (kmax s))), s = |a| + 0.01, kmax = convergence_angle / wavelength."""
    defocus, cs, M, angle, a = parameters; k1 = frequencies(n)/(n*pixel_size); k = np.hypot(k1[:, None], k1[None, :])
    twice = 2*(np.arctan2(*np.broadcast_arrays(k1[None, :], k1[:, None])) - angle); s = abs(a) + .01; kmax = convergence_angle/wavelength
    A = 1/(1 + np.exp(-(kmax - k)/(kmax*s))); l = np.pi*wavelength*k**2
    slopes = [l, np.pi/2*wavelength**3*cs_to_length*k**4, l*np.cos(twice), 2*l*M*np.sin(twice)]
    return A, defocus*slopes[0] + cs*slopes[1] + M*slopes[2], np.sign(a)*A*(1 - A)*(k - kmax)/(kmax*s**2), slopes

def aberrated_probe(parameters, m, n, **optics):
    """[m, m]: the inverse DFT of A exp(i chi), of unit energy on n x n, cropped so that pixel (m//2, m//2) is the origin."""
    A, chi, _, _ = aperture(parameters, n, **optics); i = (np.arange(m) - m//2) % n
    return (ifft(A*np.exp(1j*chi))*n/np.linalg.norm(A))[np.ix_(i, i)]

def aberrated_probe_gradients(parameters, n, G, **optics):
    """dL/d(parameters) [5] from the gradient with respect to the probe G [m, m]; the derivative by the smoothness is 0 at a = 0.
    v = exp(-i chi) unitary DFT(G embedded): dL/dchi = A / |A| Im v, dL/dA = (Re v - A / |A| sum(A / |A| Re v)) / |A|."""
    A, chi, dA, slopes = aperture(parameters, n, **optics); m, norm = len(G), np.linalg.norm(A); i = (np.arange(m) - m//2) % n
    full = np.zeros((n, n), complex); full[np.ix_(i, i)] = G; v = np.exp(-1j*chi)*fft(full)/n; B = A/norm
    return np.array([(B*v.imag*s).sum() for s in slopes] + [((v.real - B*(B*v.real).sum())/norm*dA).sum()])


# -------------------------------------------------------------------------------------------------------------------------- golden files
def read_golden(prefix):
    """-> index (PREFIX.json), arrays {name: array} of PREFIX.bin."""
    import json
    from pathlib import Path
    index, blob = json.loads(Path(prefix + '.json').read_text()), Path(prefix + '.bin').read_bytes()
    kind = dict(f64='<f8', f32='<f4', c128='<c16', c64='<c8', i32='<i4', u16='<u2')
    return index, {a['name']: np.frombuffer(blob, kind[a['dtype']], int(np.prod(a['shape'])), a['offset']).reshape(a['shape']) for a in index['arrays']}

def golden_case(case, arrays):
    """Arguments of `evaluate` for a case of a set of experiments (make_golden_ptychography.py)."""
    i = {k: arrays[name] for k, name in case['inputs'].items()}; m = case['probe']
    e = dict(object=i['object'].reshape(-1, *case['object_shape']), probe=i['probe'], corners=i['corners'], fractions=i['positions'] - i['corners'],
             measured=i['I_meas'], **{k: case[k] for k in ('loss', 'scale', 'counts', 'background', 'fresnel_number', 'frame')})
    e['transfers'] = [free_space(m, case['wavelength'], case['pixel_size'], d) for d in case['slice_distances']]
    for k in ('weights', 'coefficients', 'relaxation', 'factors', 'detector_background'):
        if k in i: e[k] = i[k].astype(complex if i[k].dtype.kind == 'c' else float)
    return e

def golden_outputs(case, r):
    """Outputs of a case by name, from what `evaluate` returned: gradients are whole; of intensities only the first pattern, of waves only
    its first mode."""
    g = r['gradients']; out = dict(loss=np.array([r['loss']]), pattern_losses=r['pattern_losses'], intensities=r['intensities'][:1],
        exit_waves=r['exit_waves'][:1, :1], grad_exit_waves=r['grad_exit_waves'][:1, :1], grad_positions=g['fractions'],
        grad_object=g['object'][0] if len(g['object']) == 1 else g['object'])
    out.update({'grad_' + k: x for k, x in g.items() if k not in ('object', 'fractions')}); return out


# ---------------------------------------------------------------------------------------------------------------------------- self-test
def difference(L, x, direction, step):
    """Central difference of fourth order of L(x + t direction) at t = 0."""
    at = lambda t: L(x + t*direction)
    return (8*(at(step) - at(-step)) - (at(2*step) - at(-2*step)))/(12*step)

STATE = ('object', 'probe', 'fractions', 'coefficients', 'relaxation', 'factors', 'detector_background')
def gradient_errors(experiment, rng, step=2e-4):
    """{argument: |difference - gradient . direction| / |gradient| / |direction|} along the gradient plus as much noise; fractions:
    the largest error of any single component, relative to the largest component."""
    r, errors = evaluate(**experiment), {}
    for name in STATE:
        if experiment.get(name) is None: continue
        x, G = np.asarray(experiment[name]), r['gradients'][name]
        L = lambda value: evaluate(**dict(experiment, **{name: value}))['loss']
        if name == 'fractions':
            fd = np.array([difference(L, x, d.reshape(x.shape), 2.5*step) for d in np.eye(x.size)]).reshape(x.shape)
            errors[name] = np.abs(fd - G).max()/np.abs(G).max(); continue
        d = rng.normal(size=x.shape) + (1j*rng.normal(size=x.shape) if np.iscomplexobj(G) else 0)
        d = d/np.linalg.norm(d) + G/max(np.linalg.norm(G), 1e-300); d *= np.linalg.norm(x)/np.linalg.norm(d)
        errors[name] = abs(difference(L, x, d, step) - (G.conj()*d).real.sum())/max(np.linalg.norm(G)*np.linalg.norm(d), 1e-300)
    return errors

def random_experiment(rng, m, n, L=1, S=1, C=0, N=4, fractional=True, weights=None, factors=False, detector_background=False, near=None, **options):
    """A small experiment whose patterns are those of another object, probe and scan, with noise."""
    Z = lambda *s: rng.normal(size=s) + 1j*rng.normal(size=s); shape = (m + 7, m + 5)
    y = rng.uniform(0, 1, (N, 2))*(np.array(shape) - m) if fractional else rng.integers(0, np.array(shape) - m + 1, (N, 2))
    corners, f = place(y, shape, m)
    e = dict(object=1 + .3*Z(S, *shape), probe=Z(L, m, m), fractions=f, corners=corners, fresnel_number=near,
             transfers=[free_space(m, .7, 1.1, d) for d in rng.uniform(2, 5, S - 1)], **options)
    if C: e.update(coefficients=.5*Z(N, C), relaxation=Z(C, m, m))
    if factors: e['factors'] = rng.uniform(.6, 1.5, N)
    if detector_background: e['detector_background'] = rng.uniform(.2, 2, (n, n))*m*m*(1 if near is None else .1)
    true = dict(e, object=e['object']*(1 + .2*Z(S, *shape)), probe=e['probe']*(1 + .2*Z(L, m, m)), fractions=f + .1*rng.normal(size=f.shape))
    e['measured'] = evaluate(**true, measured=np.ones((N, n, n)))['intensities']*rng.uniform(.8, 1.2, (N, n, n))
    if weights == 'mask': e['weights'] = (rng.uniform(size=(n, n)) > .2)*1.
    if weights == 'masks': e['weights'] = (rng.uniform(size=(N, n, n)) > .2)*1.
    if weights == 'pixels': e['weights'] = rng.uniform(0, 2, (N, n, n))
    return e

def rel(a, b): return float(np.linalg.norm(np.ravel(a) - np.ravel(b))/np.linalg.norm(np.ravel(b)))
def dot(a, b): return (np.conj(a)*b).real.sum()
def off(a, b): return abs(a/b - 1)
LENS = dict(wavelength=.0197, pixel_size=.2, convergence_angle=.02); PARAMETERS = np.array([45., .06, 8., .2, .12])

def test_closed_forms(check, rng):
    Z = lambda *s: rng.normal(size=s) + 1j*rng.normal(size=s)
    check('frequencies: Nyquist is -n/2', np.abs(np.array([*frequencies(6), *frequencies(5)]) - [0, 1, 2, -3, -2, -1, 0, 1, 2, -2, -1]).max(), 0)
    for n, m in ((9, 5), (8, 8)):
        psi = Z(m, m); D = np.exp(-2j*np.pi*np.outer(np.arange(n), np.arange(m))/n)
        check(f'far field, n = {n}, m = {m}: direct sum', rel(detector_waves(psi, n), D @ psi @ D.T), 1e-13)
    for m in (8, 7):
        p, f, g, i = Z(2, m, m), rng.uniform(-2, 2, 2), rng.uniform(-2, 2, 2), np.arange(m)
        check(f'shift, m = {m}: whole pixels are a roll', rel(shift(p, (2, -3)), np.roll(p, (2, -3), (1, 2))), 1e-14)
        check(f'shift, m = {m}: shifts add up', rel(shift(shift(p, f), g), shift(p, f + g)), 1e-14)
        check(f'shift, m = {m}: unitary', rel(shift(shift(p, f), -f), p) + off(np.linalg.norm(shift(p, f)), np.linalg.norm(p)), 1e-14)
        wave = lambda k: np.exp(2j*np.pi*(k[0]*i[:, None] + k[1]*i)/m); every = [(a, b) for a in frequencies(m) for b in frequencies(m)]
        check(f'shift, m = {m}: plane waves of every frequency, Nyquist included',
              max(rel(shift(wave(k), f), wave(k)*np.exp(-2j*np.pi*np.dot(k, f)/m)) for k in every), 1e-13)
    x = np.arange(48) - 23.3; G = lambda x, w: np.exp(-np.pi*(x[:, None]**2 + x**2)/w)   # w: width^2, complex for a beam
    check('shift of a Gaussian: closed form', rel(shift(G(x, 60.), (.37, .37)), G(x - .37, 60.)), 1e-12)
    lam, dx, w = .7, 1.1, 40 - 10j; beam = lambda z: w/(w + 1j*lam*z)*G(x*dx, w + 1j*lam*z)   # converges towards its waist at z > 0
    check('free space: Gaussian beam, closed form', rel(ifft(free_space(48, lam, dx, 9.)*fft(beam(0))), beam(9.)), 1e-11)
    converging = G(x*dx, 1/(1/60 + 1j/(lam*30))); peak = lambda z: np.abs(ifft(free_space(48, lam, dx, z)*fft(converging))).max()
    check('free space: exp(-i pi x^2 / (lambda 30)) is highest near z = 30', abs(max(range(0, 61, 5), key=peak) - 30), 10)
    check('free space is the near field with F = window^2 / (wavelength z)', rel(free_space(12, lam, dx, 9.), near_field(12, (12*dx)**2/(lam*9.))), 1e-13)
    full, odd = aberrated_probe(PARAMETERS, 48, 48, **LENS), aberrated_probe(PARAMETERS, 9, 47, **LENS)
    lower = aberrated_probe(PARAMETERS - [20, 0, 0, 0, 0], 48, 48, **LENS)
    check('free space lowers the defocus of the aberrated probe', rel(ifft(free_space(48, .0197, .2, 20.)*fft(full)), lower), 1e-12)
    cropped = aberrated_probe(PARAMETERS, 47, 47, **LENS)[19:28, 19:28]
    check('aberrated probe: unit energy, origin at m//2', abs(np.linalg.norm(full) - 1) + rel(odd, cropped), 1e-13)

def test_adjoints(check, rng):
    Z = lambda *s: rng.normal(size=s) + 1j*rng.normal(size=s)
    for n, m, F in ((12, 9, None), (10, 10, None), (11, 11, 3.3), (10, 10, -2.)):
        a, b, f = Z(m, m), Z(n, n), rng.uniform(-1, 1, 2); gap = dot(detector_waves(a, n, F, f), b) - dot(a, detector_waves_adjoint(b, m, F, f))
        check(f'adjoint of the detector, n = {n}, m = {m}, F = {F}', abs(gap)/n/m, 1e-12)
    O, H, a, b = Z(3, 9, 9), [free_space(9, .7, 1.1, d) for d in (3., 4.)], Z(2, 9, 9), Z(2, 9, 9); psi, incident = exit_waves(O, a, H)
    check('adjoint of three slices', abs(dot(psi, b) - dot(a, exit_waves_adjoint(O, incident, H, b)[1]))/dot(psi, psi), 1e-13)
    D = np.exp(-2j*np.pi*np.outer(range(9), range(9))/9); wave = O[0]*a
    for s in (1, 2): wave = O[s]*np.einsum('ka,lb,kl,kr,ls,mrs->mab', D.conj()/9, D.conj()/9, H[s - 1], D, D, wave, optimize=True)
    check('three slices: propagation by direct sums', rel(psi, wave), 1e-13)

def test_losses(check, rng):
    """A pattern of four pixels, worked out by hand: weighted means 3 and 2, so that J = I 10/3 and t = 5 measured for C = 10."""
    from math import log, sqrt
    I, measured, w = np.array([[1., 2.], [3., 4.]]), np.array([[2., 9.], [4., 0.]]), np.array([[1., 0.], [2., 2.]])
    scaled, plain = [(1, 10/3, 10.), (2, 10., 20.), (2, 40/3, 0.)], [(1, 1., 2.), (2, 3., 4.), (2, 4., 0.)]
    by_hand = dict(LeastSquares=lambda J, t: (J - t)**2, Amplitude=lambda J, t: (sqrt(J) - sqrt(t))**2,
                   Poisson=lambda J, t: J + .5 - t + (t*log(t/(J + .5)) if t else 0))
    for loss, l in by_hand.items():
        for scale, pixels in (('PerPattern', scaled), ('None', plain)):
            value = compare(I, measured, w, loss, scale, 10., .5)[0]
            check(f'{loss}, {scale}: by hand', off(value, sum(a*l(J, t) for a, J, t in pixels)), 1e-14)
    check('Amplitude: no slope at J = 0', np.abs(compare(0*I, measured, w, 'Amplitude', 'None', 1., 0.)[1]).max(), 0)

def test_identities(check, rng):
    E, Z = random_experiment, lambda *s: rng.normal(size=s) + 1j*rng.normal(size=s)
    e = E(rng, 10, 12, L=2, weights='masks', loss='Amplitude'); r = evaluate(**e); loss = lambda **change: evaluate(**dict(e, **change))['loss']
    gap = max(abs(dot(a, b))/np.linalg.norm(a)/np.linalg.norm(b) for a, b in zip(r['exit_waves'], r['grad_exit_waves']))
    check('PerPattern: Re <psi_j, G_psi_j> = 0', gap, 1e-13)
    check('PerPattern: the scale of the probe does not matter', off(loss(probe=2.5*e['probe']), r['loss']), 1e-13)
    h = evaluate(**dict(e, factors=rng.uniform(.5, 2, 4)))['gradients']['factors']
    check('PerPattern without background: no gradient by factors', np.abs(h).max()/r['loss'], 1e-13)
    check('modes: a unitary mixture is the same state', off(loss(probe=np.tensordot(np.linalg.qr(Z(2, 2))[0], e['probe'], 1)), r['loss']), 1e-13)
    check('what a mask hides may be anything', off(loss(measured=np.where(e['weights'] > 0, e['measured'], np.nan)), r['loss']), 0)
    for scale in ('PerPattern', 'None'):
        dark = e['measured'].copy(); dark[1] = 0; a, b = evaluate(**dict(e, measured=dark, scale=scale)), evaluate(**dict(e, scale=scale))
        zero = abs(a['pattern_losses'][1]) + np.abs(a['grad_exit_waves'][1]).max() + np.abs(a['gradients']['fractions'][1]).max()
        others = rel(np.delete(a['pattern_losses'], 1), np.delete(b['pattern_losses'], 1))
        check(f'{scale}: a pattern without counts has weight 0, the others keep theirs', zero + others, 1e-14)
    single = [evaluate(**dict(e, **{k: e[k][[j]] for k in ('fractions', 'corners', 'measured', 'weights')}))['gradients']['object'] for j in range(4)]
    check('N patterns are the mean of single ones', rel(r['gradients']['object'], sum(single)/4), 1e-13)
    e = E(rng, 10, 10, S=3, scale='None'); r = evaluate(**e); of = lambda key, **change: evaluate(**dict(e, **change))[key]
    check('sum_k |Psi|^2 = n^2 sum_r |psi|^2', rel(r['intensities'].sum((1, 2)), 100*(np.abs(r['exit_waves'])**2).sum((1, 2, 3))), 1e-13)
    product = of('exit_waves', object=e['object'].prod(0)[None], transfers=()); vacuum, O = np.ones((2, 17, 15)), e['object'][:1]
    check('slices without distance are their product', rel(of('exit_waves', transfers=[np.ones((10, 10))]*2), product), 1e-14)
    behind = of('intensities', object=np.concatenate([O, vacuum]))
    check('vacuum behind the object does not change the far field (n = m)', rel(behind, of('intensities', object=O)), 1e-12)
    before = of('exit_waves', object=np.concatenate([vacuum, O])); moved = ifft(e['transfers'][0]*e['transfers'][1]*fft(e['probe']))
    check('vacuum before the object propagates the probe', rel(before, of('exit_waves', object=O, probe=moved)), 1e-12)
    e = E(rng, 9, 12, L=2, C=2, scale='None'); a = np.broadcast_to(e['coefficients'][0], (4, 2)); other = relaxed_probe(e['probe'], a[0], e['relaxation'])
    check('relaxation: equal coefficients are another probe', rel(of('intensities', coefficients=a), of('intensities', coefficients=0*a, probe=other)), 1e-13)

def test_gradients(check, rng):
    """Every loss and scale, then every extension by itself, then all together."""
    LS, A, P, EACH, NONE = 'LeastSquares', 'Amplitude', 'Poisson', 'PerPattern', 'None'; cases = []
    for loss, scale, w in ((LS, EACH, 'mask'), (LS, NONE, None), (A, EACH, 'pixels'), (A, NONE, 'masks'), (P, EACH, None), (P, NONE, 'pixels')):
        cases += [(f'{loss}, {scale}, 2 modes, weights: {w}', dict(m=10, n=12, L=2, loss=loss, scale=scale, weights=w))]
    cases += [('near field, odd window', dict(m=11, n=11, near=2.7, loss=A, scale=NONE, L=2)),
              ('near field, frame of the window', dict(m=10, n=10, near=2.7, loss=A, scale=NONE, L=2, frame='window')),
              ('near field, upstream', dict(m=10, n=10, near=-4., loss=P, weights='mask')),
              ('odd window, m < n', dict(m=9, n=14, L=3, loss=P, scale=NONE)), ('whole positions', dict(m=8, n=10, fractional=False))]
    both = dict(factors=True, detector_background=True)
    for loss, scale in ((A, NONE), (LS, EACH), (P, NONE)):
        cases += [(f'relaxation, {loss}, {scale}', dict(m=10, n=10, L=2, C=3, loss=loss, scale=scale, weights='mask')),
                  (f'3 slices, {loss}, {scale}', dict(m=9, n=12, S=3, L=2, loss=loss, scale=scale)),
                  (f'factors, detector background, {loss}, {scale}', dict(m=10, n=10, L=2, loss=loss, scale=scale, weights='masks', **both))]
    for scale in (EACH, NONE): cases += [(f'everything, {P}, {scale}', dict(m=9, n=12, L=3, S=3, C=2, weights='pixels', loss=P, scale=scale, **both))]
    cases += [(f'everything in the near field, {A}', dict(m=10, n=10, L=2, S=2, C=2, weights='mask', loss=A, near=3., **both))]
    for name, c in cases:
        errors = gradient_errors(random_experiment(rng, **c), rng); check(f'gradients, {name}: ' + ', '.join(errors), max(errors.values()), 1e-7)
    e = random_experiment(rng, 10, 12, L=2); a, phi, d = rng.uniform(.5, 1, (17, 15)), rng.normal(size=(17, 15)), rng.normal(size=(17, 15))
    at = lambda a, phi: evaluate(**dict(e, object=complex_object(a, phi)[None])); da, dphi = complex_object_gradients(a, phi, at(a, phi)['gradients']['object'][0])
    fd = difference(lambda x: at(x, phi)['loss'], a, d, 1e-3), difference(lambda x: at(a, x)['loss'], phi, d, 1e-3)
    check('gradients, amplitude and phase of the object', max(off(fd[0], (da*d).sum()), off(fd[1], (dphi*d).sum())), 1e-7)
    e = random_experiment(rng, 10, 12, counts=10.); at = lambda q: evaluate(**dict(e, probe=aberrated_probe(q, 10, 12, **LENS)[None]))
    for q in (PARAMETERS, np.array([-30., .02, 5., .8, -.15])):
        an = aberrated_probe_gradients(q, 12, at(q)['gradients']['probe'][0], **LENS)
        fd = np.array([difference(lambda x: at(x)['loss'], q, d, 1e-3) for d in np.diag(np.abs(q))])/np.abs(q)
        check(f'gradients, parameters of the lens, smoothness {q[4]}', np.abs(fd/an - 1).max(), 1e-7)

def test_positions(check, rng):
    """Across whole and half pixels: with the corner held, and with the rule of `place`."""
    E = random_experiment
    for f in (.4999999, .5, 1., 1.37, 2.25, -.5, -.9):
        for m in (10, 9):
            e = E(rng, m, 12, L=2, N=3, scale='None', loss='Amplitude'); e['fractions'] = np.full((3, 2), f) + [[0, 0], [.2, -.1], [0, 3.]]
            check(f'position gradient, corner held, fraction {f}, m = {m}', gradient_errors(e, rng)['fractions'], 1e-7)
    # A sample moved through a fixed beam, on a grid four times as fine; all fields band-limited and periodic on the window
    m, k = 24, frequencies(96); low, Z = np.hypot(k[:, None], k) < 5, lambda: rng.normal(size=(96, 96)) + 1j*rng.normal(size=(96, 96))
    O, p, coarse = ifft(np.where(low, Z(), 0)), ifft(np.where(low, Z(), 0)), lambda x: x[::4, ::4]
    for quarters in ((1, 0), (2, -3)):
        moved = np.roll(O, np.negative(quarters), (0, 1))*p; model = lambda F, frame='beam': evaluate(coarse(O)[None], coarse(p)[None],
            [np.array(quarters)/4], corners=[(0, 0)], measured=np.ones((1, m, m)), fresnel_number=F, frame=frame)['intensities']
        far, near = np.abs(detector_waves(coarse(moved), m))**2, np.abs(coarse(detector_waves(moved, 96, 30.)))**2
        check(f'a sample moved by {quarters} quarters of a pixel, far field', rel(model(None), far), 1e-12)
        check(f'a sample moved by {quarters} quarters of a pixel, near field', rel(model(30.), near), 1e-12); off_by = rel(model(30., 'window'), near)
        check(f"... which is {off_by:.0%} off in the frame of the window", float(off_by < .05), 0)
    e = E(rng, 10, 12, N=1, scale='None'); at = lambda c, f: evaluate(**dict(e, corners=np.array([c]), fractions=np.array([f])))
    a, b = at((2, 1), (.5, .2)), at((3, 1), (-.5, .2)); jump, row = off(b['loss'], a['loss']), np.abs(a['exit_waves'][0, 0]).max(1)
    check('corner + 1/2 and (corner + 1) - 1/2: the same wave but for the first row', rel(b['exit_waves'][0, 0, :-1], a['exit_waves'][0, 0, 1:]), 1e-13)
    check(f'... the loss jumps there, by {jump:.0e}, as that row has {row[0]/row.max():.0e} of the largest value', float(jump < 1e-6), 0)
    x = np.arange(40) - 19.5; p = np.exp(-np.pi*(x[:, None]**2 + x**2)/45)*(1 + .1*x)
    e.update(object=1 + .3*rng.normal(size=(1, 47, 45)), probe=p[None], measured=rng.uniform(0, 1e4, (1, 40, 40)))
    a, b = at((2, 1), (.5, .2)), at((3, 1), (-.5, .2)); gap = off(b['loss'], a['loss']) + rel(a['gradients']['fractions'], b['gradients']['fractions'])
    check('... no jump, of loss or gradient, for a probe that vanishes at the border', gap, 1e-10)
    check('... the fraction m is the fraction 0', off(at((2, 1), (40.3, .2))['loss'], at((2, 1), (.3, .2))['loss']), 1e-12)
    corners, f = place([[2.5, 1.4999], [0., 5.]], (17, 15), 10)
    check('place: nearest corner, halves upwards', np.abs(corners - [[3, 1], [0, 5]]).max() + np.abs(f - [[-.5, .4999], [0, 0]]).max(), 1e-12)

def test_golden(check, folder):
    import os
    found = lambda name: os.path.exists(os.path.join(folder, name + '.json')) or print(f'     {name} is not there')
    for name in filter(found, ('ptycho_A', 'ptycho_C_rect')):
        index, g = read_golden(os.path.join(folder, name)); meta = index['meta']; m, n, q = meta['probe'], meta['detector'], g['init_probe_params']
        lens = {k: meta[k] for k in ('wavelength', 'pixel_size', 'convergence_angle', 'cs_to_length')}; p = aberrated_probe(q, m, n, **lens)
        a, phi = g['init_amp'].astype(float), g['init_phase'].astype(float); O = complex_object(a, phi)[None]
        r = evaluate(O, p[None], np.zeros(g['positions'].shape), corners=g['positions'], measured=g['I_meas'], counts=meta['counts'])
        da, dphi = complex_object_gradients(a, phi, r['gradients']['object'][0]); Gp = r['gradients']['probe'][0]
        out = dict(probe_full=aberrated_probe(q, n, n, **lens), probe=p, psi=r['exit_waves'][:, 0], I_pred=r['intensities'], loss=np.array([r['loss']]),
                   grad_psi=r['grad_exit_waves'][:, 0], grad_probe=Gp, grad_amp=da, grad_phase=dphi, grad_probe_params=aberrated_probe_gradients(q, n, Gp, **lens))
        for k, x in out.items(): check(f'{name}: {k}', rel(x[:len(g[k + '_f64'])], g[k + '_f64']), 1e-11)
    for name in filter(found, ('ptycho_D_experiments',)):
        index, g = read_golden(os.path.join(folder, name))
        for case in index['cases']:
            out = golden_outputs(case, evaluate(**golden_case(case, g)))
            check(f'{name}: {case["name"]}', max(rel(out[k], g[array]) for k, array in case['outputs'].items()), 1e-11)

def self_test():
    import os
    rng, passed, failed = np.random.default_rng(20), [], []
    def check(name, error, tolerance):
        good = bool(error <= tolerance); (passed if good else failed).append(name)
        print(f'{"ok  " if good else "FAIL"} {name}: {error:.1e} (<= {tolerance:.0e})')
    for test in (test_closed_forms, test_adjoints, test_losses, test_identities, test_gradients, test_positions): test(check, rng)
    test_golden(check, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'golden', 'ptychography'))
    print(f'{len(passed)} passed, {len(failed)} failed'); return 1 if failed else 0

if __name__ == '__main__': raise SystemExit(self_test())
