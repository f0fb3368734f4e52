"""How kernels are measured: probes, a file per family, rivals, records and reproductions."""
