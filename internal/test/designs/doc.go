// Package designs tests what examples/designs/README.md promises across packages: presets beside the Go clients, log lines and
// metrics of real calls, and the files of examples/designs, which it plays.
package designs
