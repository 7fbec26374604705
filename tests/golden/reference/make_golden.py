# SPDX-License-Identifier: MIT
"""Writes PREFIX.bin (little-endian, C order, 64-byte aligned) and PREFIX.json {arrays: name dtype shape offset nbytes; cases} from the
reference in projectors.py:   python3 make_golden.py PREFIX SEED
Every case holds inputs, values and all gradients for random cotangents; arrays have no batch axis: poses are the leading axis of
matrices, shifts, projections, weights and their gradients. project is checked case by case against `reconstruction`."""
import json, sys
import numpy as np
import projectors as R

CASES = [  # name, projection box, reconstruction box, oversampling, cutoff, poses
    ('2d_even', (16, 16), (16, 16), 1., None, 3), ('2d_odd', (15, 15), (15, 15), 1., None, 2), ('2d_rect', (12, 16), (14, 18), 1., 5.5, 2),
    ('2d_os2', (12, 12), (24, 24), 2., None, 2), ('2d_crop', (8, 8), (16, 16), 1., None, 2),
    ('3d_even', (12, 12), (12, 12, 12), 1., None, 3), ('3d_odd', (11, 11), (11, 11, 11), 1., None, 2), ('3d_box', (10, 10), (12, 10, 14), 1., 4.2, 2),
    ('3d_os1.5', (8, 8), (12, 12, 12), 1.5, None, 2), ('3d_os2', (8, 8), (16, 16, 16), 2., 3.4, 2), ('sub_even', (8, 8, 8), (8, 8, 8), 1., None, 2),
    ('sub_odd', (7, 7, 7), (9, 9, 9), 1.25, None, 2)]

def main(prefix, seed):
    rng = np.random.default_rng(seed); arrays, cases, blob = [], [], bytearray()
    def put(name, a):
        a = np.ascontiguousarray(a); blob.extend(b'\0'*(-len(blob) % 64))
        arrays.append(dict(name=name, dtype=a.dtype.str[1:], shape=list(a.shape), offset=len(blob), nbytes=a.nbytes)); blob.extend(a.tobytes()); return name
    C = lambda *s: rng.normal(size=s) + 1j*rng.normal(size=s)
    for name, n, N, os, cut, P in CASES:
        hn, hN, D = n[:-1] + (n[-1]//2 + 1,), N[:-1] + (N[-1]//2 + 1,), len(N)
        M = np.stack([np.linalg.qr(rng.normal(size=(D, D)))[0] for _ in range(P)]); M[-1] = M[-1] @ (np.eye(D) + .04*rng.normal(size=(D, D)))   # last: not a rotation
        s, V, p = 2*rng.normal(size=(P, len(n))), C(*hN), C(P, *hn); W, g, gd, gw = rng.uniform(.3, 1.7, (P,) + hn), C(P, *hn), C(*hN), rng.normal(size=hN)
        inp = {k: put(f'{name}.{k}', v) for k, v in dict(matrices=M, shifts=s, reconstruction=V, projections=p, weights=W, cot_projections=g, cot_data=gd, cot_weight=gw).items()}
        for kern in R.KERNELS:
            out = {}; add = lambda k, v: out.__setitem__(k, put(f'{name}.{kern}.{k}', v))
            add('project', np.stack([R.project(V, N, M[i], s[i], n, kern, os, cut) for i in range(P)]))
            for skip in (False, True):
                r = [R.project_gradients(V, N, M[i], s[i], n, g[i], kern, os, cut, skip) for i in range(P)]; t = '_skip_redundant' if skip else ''
                add('grad_reconstruction' + t, sum(x[0] for x in r)); add('grad_matrices' + t, np.stack([x[1] for x in r])); add('grad_shifts' + t, np.stack([x[2] for x in r]))
            for ab in (True, False):
                t = '_absolute' if ab else '_signed'; r = [R.backproject(p[i], N, M[i], s[i], n, kern, os, cut, W[i], ab) for i in range(P)]
                if ab: add('data', sum(x[0] for x in r))
                add('weight' + t, sum(x[1] for x in r)); q = [R.backproject_gradients(p[i], N, M[i], s[i], n, gd, kern, os, cut, W[i], gw, ab) for i in range(P)]
                if ab: add('bp_grad_projections', np.stack([x[0] for x in q])); add('bp_grad_shifts', np.stack([x[2] for x in q]))
                add('bp_grad_matrices' + t, np.stack([x[1] for x in q])); add('bp_grad_weights' + t, np.stack([x[3] for x in q]))
            cases.append(dict(name=f'{name}.{kern}', kernel=kern, box=list(n), reconstruction_box=list(N), oversampling=os, cutoff=cut, poses=P, inputs=inp, outputs=out))
    open(prefix + '.bin', 'wb').write(blob); json.dump(dict(format=1, endian='little', seed=seed, arrays=arrays, cases=cases), open(prefix + '.json', 'w'), indent=1)
if __name__ == '__main__': main(sys.argv[1], int(sys.argv[2]))
