#error "wmma (tensor cores) cannot be simulated, and needs a GPU"
