package doc

import (
	"bytes"

	"go.yaml.in/yaml/v3"
)

// Write encodes a value as YAML, with the yaml tags of its fields.
func Write(v any) ([]byte, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), e.Close()
}
