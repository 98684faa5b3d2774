package status

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// A Config is which configuration is in force, and since when.
type Config struct {
	File     string    `json:"file"`
	Loaded   time.Time `json:"loaded"`             // what is in force
	Pending  []string  `json:"pending,omitempty"`  // fields that have changed and need a new start
	Store    string    `json:"store,omitempty"`    // what the store does not know of upstreams that the latest reload added
	FailedAt time.Time `json:"failed_at,omitzero"` // of the latest reload, if it changed nothing
	Error    string    `json:"error,omitempty"`    // why it did
}

// Print says it in a line, and what is wrong with it in others.
func (c *Config) Print(w io.Writer) {
	fmt.Fprintf(w, "%s, loaded %v ago\n", c.File, time.Since(c.Loaded).Round(time.Second))
	if len(c.Pending) > 0 {
		fmt.Fprintf(w, "  changed since, needs a restart: %s\n", strings.Join(c.Pending, ", "))
	}
	if c.Store != "" {
		fmt.Fprintf(w, "  STORE: %s\n", c.Store)
	}
	if c.Error != "" {
		fmt.Fprintf(w, "  RELOAD FAILED %v ago, the earlier configuration stays in force: %s\n", time.Since(c.FailedAt).Round(time.Second), strings.ReplaceAll(c.Error, "\n", "\n  "))
	}
}
