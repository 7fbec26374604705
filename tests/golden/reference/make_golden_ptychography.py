# SPDX-License-Identifier: MIT
"""Golden sets of ptychographic experiments from the reference in ptychography.py:
    python3 make_golden_ptychography.py PREFIX SEED [SCENES.json]
writes PREFIX.bin (little-endian, C order, 64-byte aligned) and PREFIX.json:
    arrays  name, dtype (f64 f32 c128 c64 i32 u16), shape, offset, nbytes, as in every golden set
    scenes  what this program was given: SCENES.json may be such an index again
    cases   one per scene, loss and scale: its options, and names of arrays: inputs {argument: array}, outputs {quantity: array}
Inputs are exact in single precision; positions are multiples of 1/256 pixel, and positions - corners are the fractions. Arrays follow
`evaluate` of the reference, but an object of one slice is [rows, columns]; intensities hold the first pattern, exit_waves its first mode.
Real relaxation coefficients are f32; dL/da is the real part of their gradient, which is complex as for complex ones (c64).
Every gradient of every case is checked by central differences before anything is written (finite_differences: the largest error)."""
import json, os, sys
import numpy as np
import ptychography as R

OPTICS = dict(wavelength=.0197, pixel_size=.2)
DEFAULTS = dict(slices=1, modes=1, relaxation=0, real_coefficients=False, positions='fractional', duplicates=0, empty=False, weights=None,
                fresnel_number=None, frame='beam', slice_distances=[], factors=False, detector_background=False, dose=4e4, counts=25., background=1e-2)
A, P, LS, NONE, EACH = 'Amplitude', 'Poisson', 'LeastSquares', 'None', 'PerPattern'
SCENES = [  # weights: Mask (one for all patterns), Masks, PerPixel (one for all), PerPixels
            # positions: whole, fractional, beyond (the corner is not the nearest one)
    dict(name='modes_32', object=(58, 62), probe=32, detector=32, modes=3, patterns=9, duplicates=1, weights='Mask', cases=[(A, NONE), (P, NONE), (LS, EACH)]),
    dict(name='modes_48', object=(72, 66), probe=48, detector=48, modes=3, patterns=6, weights='Masks', cases=[(A, EACH), (P, NONE)]),
    dict(name='padded_48', object=(50, 58), probe=24, detector=48, modes=2, patterns=6, weights='PerPixel', cases=[(P, NONE), (LS, EACH)]),
    dict(name='odd_padded_32', object=(41, 44), probe=21, detector=32, patterns=7, empty=True, weights='PerPixels', cases=[(A, EACH), (LS, NONE)]),
    dict(name='whole_48', object=(46, 48), probe=32, detector=48, patterns=6, positions='whole', cases=[(A, NONE), (P, EACH)]),
    dict(name='near_whole_32', object=(46, 45), probe=32, detector=32, modes=2, patterns=5, positions='whole', fresnel_number=60., weights='Mask',
         cases=[(P, EACH)]),
    dict(name='near_32', object=(50, 53), probe=32, detector=32, modes=2, patterns=6, fresnel_number=60., weights='Mask', cases=[(A, NONE)]),
    dict(name='positions_beyond_32', object=(54, 52), probe=32, detector=32, patterns=8, positions='beyond', cases=[(A, NONE), (LS, EACH)]),
    dict(name='relaxation_32', object=(52, 50), probe=32, detector=32, modes=2, patterns=7, relaxation=3, weights='Mask', cases=[(A, NONE)]),
    dict(name='real_relaxation_32', object=(46, 50), probe=24, detector=32, patterns=6, relaxation=2, real_coefficients=True, cases=[(LS, EACH)]),
    dict(name='multislice_32', object=(52, 54), probe=32, detector=32, slices=3, patterns=6, slice_distances=[20., 20.], cases=[(A, NONE)]),
    dict(name='multislice_modes_48', object=(60, 58), probe=40, detector=48, slices=3, modes=2, patterns=4, slice_distances=[15., 25.], weights='Mask',
         cases=[(P, NONE)]),
    dict(name='background_32', object=(50, 50), probe=32, detector=32, patterns=6, factors=True, detector_background=True, weights='Mask',
         cases=[(P, NONE), (A, EACH)]),
    dict(name='everything_32', object=(47, 51), probe=28, detector=32, slices=2, modes=2, patterns=5, relaxation=2, slice_distances=[20.], factors=True,
         detector_background=True, weights='Masks', cases=[(P, NONE)])]

def smooth(rng, shape, cutoff):
    """Random field in [0, 1] without frequencies much above cutoff (cycles per pixel)."""
    k = [np.fft.fftfreq(s) for s in shape]; f = np.fft.ifft2(np.fft.fft2(rng.normal(size=shape))*np.exp(-(k[0][:, None]**2 + k[1]**2)/(2*cutoff**2))).real
    return (f - f.min())/(f.max() - f.min())

def single(x): return x.astype(np.complex64 if np.iscomplexobj(x) else np.float32)   # what is stored, and what the reference is given
def noise(rng, x): return rng.normal(size=np.shape(x)) + (1j*rng.normal(size=np.shape(x)) if np.iscomplexobj(x) else 0)

def scan(rng, c):
    """Corners and positions: a jittered raster, its ends included."""
    N, m, room = c['patterns'], c['probe'], np.array(c['object']) - c['probe']; side = int(np.ceil(np.sqrt(N)))
    y = np.stack(np.meshgrid(*(np.linspace(0, r, side) for r in room), indexing='ij'), -1).reshape(-1, 2)[:N] + rng.uniform(-2, 2, (N, 2))
    y[1] = room; y = np.clip(np.round(y*256)/256, 0, room)
    if c['positions'] == 'whole': y = np.round(y)
    if c['duplicates']: y[-c['duplicates']:] = y[:c['duplicates']]
    corners, f = R.place(y, c['object'], m)
    if c['positions'] == 'beyond': f = np.round(rng.uniform(-1.8, 1.8, (N, 2))*256)/256; f[0], f[1], f[2] = (.5, 1.), (-.5, -1.), (.75, 1.25)
    return corners.astype(np.int32), corners + f

def probe_modes(rng, m, count):
    """Curved, slightly asymmetric Hermite-Gauss-like modes; not zero at the border."""
    x = (np.arange(m) - m/2 + .3)/(.19*m); g = np.exp(-(x[:, None]**2 + .8*x**2)/2 + .8j*x[:, None]**2 + .5j*x**2 + .3j*x[:, None]*x)
    shape = [1, x[:, None], x + .2, x[:, None]*x, x[:, None]**2 - 1, x**2 - .7][:count]; return np.stack([g*s*(1 + .2*smooth(rng, (m, m), .2)) for s in shape])

def make_scene(rng, c):
    """Inputs as stored. The patterns are those of a true object, probe, scan and so on, with Poisson noise; the other inputs are a state
    beside the truth, as in the middle of a reconstruction."""
    m, n, N, S, L = (c[k] for k in ('probe', 'detector', 'patterns', 'slices', 'modes')); corners, positions = scan(rng, c); shape = tuple(c['object'])
    thin = lambda: (1 - .3*smooth(rng, shape, .09)/S)*np.exp(1j*(1.6*smooth(rng, shape, .12) - .8)/np.sqrt(S))
    true = dict(object=np.stack([thin() for _ in range(S)])); p = probe_modes(rng, m, L + c['relaxation']); p /= np.linalg.norm(p, axis=(1, 2), keepdims=True)
    size, power = np.sqrt(c['dose']*(1 if c['fresnel_number'] else 1/n**2)), .35**np.arange(L)   # sum_k I is about the dose
    true['probe'] = p[:L]*size*np.sqrt(power/power.sum())[:, None, None]
    if c['relaxation']:
        a = .3*rng.normal(size=(N, c['relaxation'])); turn = 1. if c['real_coefficients'] else np.exp(1j*rng.uniform(0, 2*np.pi, a.shape))
        true.update(coefficients=a*turn, relaxation=p[L:]*size)
    if c['factors']: true['factors'] = rng.uniform(.7, 1.3, N)
    if c['detector_background']: true['detector_background'] = c['dose']/n**2*(.05 + .15*smooth(rng, (n, n), .1))
    transfers = [R.free_space(m, OPTICS['wavelength'], OPTICS['pixel_size'], d) for d in c['slice_distances']]
    I = R.evaluate(**true, fractions=positions - corners + .2*rng.normal(size=(N, 2)), corners=corners, fresnel_number=c['fresnel_number'], frame=c['frame'],
                   transfers=transfers, measured=np.ones((N, n, n)))['intensities']
    measured = np.minimum(rng.poisson(I), 65535).astype(np.uint16); stored = dict(positions=positions, corners=corners)
    if c['empty']: measured[N//2] = 0
    if c['weights'] in ('Mask', 'Masks'):      # a beam stop, dead pixels, hot pixels
        u = rng.uniform(size=(n, n) if c['weights'] == 'Mask' else (N, n, n)); w = (u > .04).astype(np.uint16); w[..., :2, :3] = 0; stored['weights'] = w
        measured[np.broadcast_to(u < .01, measured.shape)] = 65535; measured[..., :2, :3] = 0
    if c['weights'] in ('PerPixel', 'PerPixels'):
        stored['weights'] = single(np.maximum(rng.uniform(-.2, 1.8, (n, n) if c['weights'] == 'PerPixel' else (N, n, n)), 0))
    for k, x in true.items(): stored[k] = single(x + .1*noise(rng, x)*(np.abs(x).max()*.3 if k == 'probe' else 1 if k == 'coefficients' else x))
    stored['I_meas'] = measured; return stored

def main(prefix, seed, scenes):
    rng = np.random.default_rng(seed); arrays, cases, blob, done = [], [], bytearray(), set()
    kinds = {'float64': 'f64', 'float32': 'f32', 'complex128': 'c128', 'complex64': 'c64', 'int32': 'i32', 'uint16': 'u16'}
    def put(name, a):
        if name in done: return name
        a = np.ascontiguousarray(a); blob.extend(b'\0'*(-len(blob) % 64)); done.add(name)
        arrays.append(dict(name=name, dtype=kinds[a.dtype.name], shape=list(a.shape), offset=len(blob), nbytes=a.nbytes))
        blob.extend(a.astype(a.dtype.newbyteorder('<')).tobytes()); return name
    for c in scenes:
        c = {**DEFAULTS, **c}; stored = make_scene(rng, c)
        if c['slices'] == 1: stored['object'] = stored['object'][0]
        inputs = {k: put(f'{c["name"]}.{k}', x) for k, x in stored.items()}
        for loss, scale in c['cases']:
            case = dict(name=f'{c["name"]}.{loss}.{scale}', object_shape=list(c['object']), slices=c['slices'], probe=c['probe'], detector=c['detector'],
                        modes=c['modes'], n_positions=c['patterns'], relaxation=c['relaxation'], loss=loss, scale=scale, counts=c['counts'],
                        background=c['background'], weights=(c['weights'] or 'None').rstrip('s'), fresnel_number=c['fresnel_number'], frame=c['frame'], **OPTICS,
                        slice_distances=list(c['slice_distances']), inputs=inputs)
            e = R.golden_case(case, {inputs[k]: x for k, x in stored.items()}); out = R.golden_outputs(case, R.evaluate(**e))
            errors = R.gradient_errors(e, np.random.default_rng(1), 1e-5).values()   # small steps: |Psi| is almost 0 in some pixels
            case['finite_differences'] = float(max(errors)); assert case['finite_differences'] < 1e-7, case
            owner = lambda k: c['name'] if k in ('intensities', 'exit_waves') else case['name']   # the same for every loss
            case['outputs'] = {k: put(f'{owner(k)}.{k}', x) for k, x in out.items() if k != 'grad_exit_waves'}
            cases.append(case); print(f'{case["name"]}: loss {out["loss"][0]:.6g}, differences {case["finite_differences"]:.1e}, {len(blob)} bytes')
    name = os.path.basename(prefix); meta = dict(case=name, seed=seed, generator='reference/make_golden_ptychography.py')
    index = dict(format=1, meta=meta, file=name + '.bin', byteorder='little', complex='interleaved re,im', arrays=arrays, scenes=scenes, cases=cases)
    with open(prefix + '.bin', 'wb') as f: f.write(blob)
    with open(prefix + '.json', 'w') as f: json.dump(index, f, indent=1); f.write('\n')

if __name__ == '__main__':
    given = SCENES
    if len(sys.argv) > 3:
        with open(sys.argv[3]) as f: given = json.load(f)
    main(sys.argv[1], int(sys.argv[2]), given['scenes'] if isinstance(given, dict) else given)
