package main

import (
	"encoding/json"
	"testing"
)

func TestExportWritesSchema(t *testing.T) {
	out, says, code := exporting(t, "schema")
	var v struct {
		Defs map[string]any `json:"$defs"`
	}
	if err := json.Unmarshal([]byte(out), &v); err != nil || code != 0 || len(v.Defs) < 20 {
		t.Errorf("code %d, %v, %d mappings, %q; want JSON with 20 mappings at least", code, err, len(v.Defs), says)
	}
}
