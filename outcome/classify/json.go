package classify

import (
	"bytes"
	"encoding/json"
	"strings"
)

// readJSON collects from the errors of AWS, OpenAI, Anthropic, Gemini and ntfy.
// The body may be cut short anywhere: what came before the cut counts.
func (d *detail) readJSON(body []byte) {
	f := fields(bytes.TrimPrefix(body, []byte("\ufeff")))
	d.add(bareAWSCode(f["__type"]))
	d.add(ntfyCode(f))
	d.add(f["error.code"])
	d.add(f["error.status"])
	d.add(f["error.type"])
	d.add(f["response.error.code"]) // OpenAI's response.failed event
	d.add(bareAWSCode(f["code"]))
	d.add(bareAWSCode(f["Code"]))
	d.add(f["error"])
	for _, key := range [...]string{"error.message", "response.error.message", "message", "Message"} {
		if d.message == "" {
			d.message = f[key]
		}
	}
	d.retry = f["error.details.retryDelay"]
	d.perDay = strings.Contains(f["error.details.violations.quotaId"], "PerDay")
}

// ntfyCode is a number, which only ntfy's "http" beside it makes a code.
func ntfyCode(f map[string]string) string {
	if f["#http"] == "" {
		return ""
	}
	return f["#code"]
}

const (
	maxPath  = 4  // keys to the deepest value that is looked at
	maxDepth = 32 // of objects and arrays: no error is as deep, and work stays linear
)

// fields flattens the strings and numbers of a JSON text by their path. Arrays
// leave no trace in it, so Gemini's errors read the same with and without the
// array around them. The first value of a path counts, except that of several
// quota ids one per day is kept. Numbers are kept with "#" before the path.
func fields(body []byte) map[string]string {
	f := make(map[string]string)
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	w := walker{}
	for len(w.open) <= maxDepth {
		t, err := dec.Token()
		if err != nil {
			break
		}
		if path, value, ok := w.step(t); ok {
			keep(f, path, value)
		}
	}
	return f
}

func keep(f map[string]string, path, value string) {
	old, seen := f[path]
	if !seen || strings.HasSuffix(path, ".quotaId") && !strings.Contains(old, "PerDay") {
		f[path] = value
	}
}

// A walker knows where in a JSON text a stream of tokens has got to.
type walker struct {
	open []level // the objects and arrays around the next token
}

type level struct {
	object bool
	key    string // of an object, once its key has been seen; else empty
	keyed  bool
}

// step takes the next token and reports the path and value of a scalar.
func (w *walker) step(t json.Token) (path, value string, ok bool) {
	top := w.top()
	if s, isString := t.(string); isString && top != nil && top.object && !top.keyed {
		top.key, top.keyed = s, true
		return "", "", false
	}
	switch t := t.(type) {
	case json.Delim:
		w.delim(t)
		return "", "", false
	case string:
		path, value, ok = w.path(), t, true
	case json.Number:
		path, value, ok = "#"+w.path(), t.String(), true
	}
	w.valueDone()
	return path, value, ok && path != "" && path != "#"
}

func (w *walker) top() *level {
	if len(w.open) == 0 {
		return nil
	}
	return &w.open[len(w.open)-1]
}

func (w *walker) delim(d json.Delim) {
	switch d {
	case '{', '[':
		w.open = append(w.open, level{object: d == '{'})
	default:
		w.open = w.open[:len(w.open)-1]
		w.valueDone()
	}
}

// valueDone makes the object around a finished value ready for its next key.
func (w *walker) valueDone() {
	if top := w.top(); top != nil {
		top.keyed = false
	}
}

// path is empty when it is too deep to matter.
func (w *walker) path() string {
	keys := make([]string, 0, maxPath)
	for _, l := range w.open {
		if !l.object {
			continue
		}
		if len(keys) == maxPath {
			return ""
		}
		keys = append(keys, l.key)
	}
	return strings.Join(keys, ".")
}
