import time, numpy as np, gpukern as gk, statistics as st, sys
from gpukern import _core
rng=np.random.default_rng(0)
def t(f, n=15, warm=3):
    for _ in range(warm): r=f()
    xs=[]
    for _ in range(n):
        del r
        s=time.perf_counter(); r=f(); xs.append(time.perf_counter()-s)
    return st.median(xs), min(xs)
t0=time.perf_counter()
A={}
for n in (1024,4096,8192):
    a=rng.standard_normal((n,n),dtype=np.float32); b=rng.standard_normal((n,n),dtype=np.float32)
    r=gk.add(a,b); assert np.array_equal(r,a+b), n
    m,mi=t(lambda: gk.add(a,b)); print(f"add {n}: {m*1e3:.3f} ms (min {mi*1e3:.3f}), in {2*a.nbytes/m/1e9:.1f} GB/s; numpy {t(lambda: a+b,5)[0]*1e3:.3f}")
    out=np.empty_like(a); print("   out=", t(lambda: gk.add(a,b,out=out))[0]*1e3, " pinned inputs:", end=" ")
    pa=gk.add(a,0.0); pb=gk.add(b,0.0); print(t(lambda: gk.add(pa,pb))[0]*1e3)
s=rng.standard_normal(2**27-157,dtype=np.float32)
print("bits", gk.sum(s), gk.sum(gk.to_device(s)).to_host(), np.sum(s,dtype=np.float64))
m,mi=t(lambda: gk.sum(s)); print(f"sum: {m*1e3:.3f} ms (min {mi*1e3:.3f}) {s.nbytes/m/1e9:.1f} GB/s, numpy {t(lambda: s.sum(),5)[0]*1e3:.2f}")
a=rng.standard_normal((4096,4096),dtype=np.float32); b=rng.standard_normal((4096,4096),dtype=np.float32)
r=gk.matmul(a,b); da,db=gk.to_device(a),gk.to_device(b); d=gk.matmul(da,db).to_host(); print("matmul same bits host/device:", np.array_equal(r,d), abs(r-d).max())
m,mi=t(lambda: gk.matmul(a,b)); print(f"matmul: {m*1e3:.3f} (min {mi*1e3:.3f})")
for lim in (300<<20, 100<<20):
    _core.limit("device_memory", lim); r2=gk.matmul(a,b); m,_=t(lambda: gk.matmul(a,b),5); print("limit",lim, m*1e3, np.array_equal(r,r2), abs(r-r2).max())
_core.limit("device_memory",0)
print("to_device 64MB", t(lambda: gk.to_device(a))[0]*1e3, "to_host", t(lambda: da.to_host())[0]*1e3)
for n in (256,1024,4096,16384,65536,262144,1<<20,1<<22):
    a=rng.standard_normal(n,dtype=np.float32); b=rng.standard_normal(n,dtype=np.float32)
    row=[]
    for lim in (0,1<<30):
        _core.limit("mapped_call", lim); row.append(t(lambda: gk.add(a,b),200 if n<1e5 else 40,20)[0]*1e6)
    print(f"n={n} ({n*4>>10} KiB): flow {row[0]:.1f} us, mapped {row[1]:.1f} us, numpy {t(lambda: a+b,200,20)[0]*1e6:.1f} us")
_core.limit("mapped_call",192<<10)
with gk.profile() as p:
    a=rng.standard_normal((4096,4096),dtype=np.float32); gk.add(a,a)
print({k:v for k,v in p.calls[-1].__dict__.items()} if hasattr(p.calls[-1],'__dict__') else p.calls)
