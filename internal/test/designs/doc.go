// Package designs tests promises of examples/designs/README.md across packages: presets compared with the Go clients, log lines
// and metrics of real calls, and simulations of the files in examples/designs.
package designs
