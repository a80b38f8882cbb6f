#error "cub cannot be simulated, and needs a GPU"
