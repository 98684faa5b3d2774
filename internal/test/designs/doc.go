// Package designs tries what docs/designs.md says across packages: presets beside the Go clients, and what
// logs and metrics say of real calls.
package designs
