package mcpdialect

import (
	"bytes"
	"encoding/json"
	"io"
	"sync"
)

const (
	maxList    = 1 << 20 // bytes of a list of tools that are read
	maxSchemas = 10_000
)

// schemas has the names of tools that declare a schema of their results. Clients refuse structured content that does not match
// it, also of an error. It is safe for concurrent use.
type schemas struct {
	mu    sync.Mutex // protects names
	names map[string]bool
}

// has reports whether a tool declares a schema.
func (s *schemas) has(tool string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.names[tool]
}

// learn reads a response to tools/list, which is JSON or a stream of events.
func (s *schemas) learn(b []byte) {
	for line := range bytes.Lines(b) {
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			s.learnResult(data)
		}
	}
	s.learnResult(b)
}

func (s *schemas) learnResult(b []byte) {
	var list struct {
		Result struct {
			Tools []struct {
				Name   string          `json:"name"`
				Schema json.RawMessage `json:"outputSchema"`
			} `json:"tools"`
		} `json:"result"`
	}
	if json.Unmarshal(b, &list) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range list.Result.Tools {
		switch declared := len(t.Schema) > 0 && string(t.Schema) != "null"; {
		case !declared:
			delete(s.names, t.Name)
		case len(s.names) < maxSchemas:
			s.names[t.Name] = true
		}
	}
}

// A listing is the body of a response to tools/list.
type listing struct {
	io.ReadCloser
	schemas *schemas
	came    []byte
}

func (l *listing) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p)
	if len(l.came) <= maxList {
		l.came = append(l.came, p[:min(n, maxList+1-len(l.came))]...)
	}
	if err == io.EOF {
		l.end()
	}
	return n, err
}

// Close implements io.Closer. A caller may close a stream after the event that it needs.
func (l *listing) Close() error {
	l.end()
	return l.ReadCloser.Close()
}

func (l *listing) end() {
	if len(l.came) <= maxList {
		l.schemas.learn(l.came)
	}
	l.came = nil
}
