package status

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// A Config describes the configuration in force.
type Config struct {
	File     string    `json:"file"`
	Loaded   time.Time `json:"loaded"`             // when the configuration in force was loaded
	Pending  []string  `json:"pending,omitempty"`  // changed fields that need a restart
	Store    string    `json:"store,omitempty"`    // what the store does not know about upstreams that the latest reload added
	FailedAt time.Time `json:"failed_at,omitzero"` // the latest reload, if it failed
	Error    string    `json:"error,omitempty"`    // why it failed
}

// Print writes a line about the configuration, and further lines about its problems.
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
