// Package designs tries what docs/adr/0017-five-designs.md says across packages: presets beside the Go clients, and what
// logs and metrics say of real calls.
package designs
