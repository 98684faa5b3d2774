package llm

import (
	"bytes"
	"slices"
)

// Parse reads the body of a request. It ignores what it does not know, and returns a *RequestError only for a body that
// no provider accepts. On a route that does not call a model (see Default), the body may be anything.
func (r Route) Parse(body []byte) (*Request, error) {
	q := &Request{Route: r, Choices: 1}
	q.doc.body = body
	doc, bad := scan(body)
	switch {
	case bad != nil && r.opaque(body):
		return q, nil
	case bad != nil:
		return nil, bad
	}
	q.doc = doc
	if r.Operation == "other" {
		if q.Model == "" {
			q.Model = doc.says(0, "model")
		}
		return q, nil
	}
	if bad := q.read(); bad != nil {
		return nil, bad
	}
	return q, nil
}

// opaque reports whether a body need not be JSON. This holds for unknown operations, and for models with a vendor's own
// format if the body does not start with an object.
func (r Route) opaque(body []byte) bool {
	if r.Operation == "other" {
		return true
	}
	s := scanner{document: document{body: body}}
	return r.Family == Invoke && len(body) > 0 && s.peek() != '{'
}

func (r *Request) read() *RequestError {
	if r.doc.kind(0) != kindObject {
		return &RequestError{Problem: "is JSON, but not an object"}
	}
	if bad := r.find(0, "", r.field); bad != nil {
		return bad
	}
	if bad := r.findNested(); bad != nil {
		return bad
	}
	if bad := r.readModel(); bad != nil {
		return bad
	}
	r.readState()
	return r.readNumbers()
}

// find records the nodes of an object's known fields. It returns an error if a field occurs twice.
func (r *Request) find(object uint32, prefix string, is func([]byte) field) (bad *RequestError) {
	d := &r.doc
	var cased []uint32
	defer func() {
		for i, k := range cased {
			if f := is(folded(d.text(k, nil))); bad == nil && (r.seen&(1<<f) != 0 || slices.ContainsFunc(cased[:i], func(other uint32) bool { return is(folded(d.text(other, nil))) == f })) {
				bad = &RequestError{Field: prefix + string(d.text(k, nil)), Problem: "is given twice, in another spelling"}
			} else if f == fModel && d.kind(k+1) != kindNull {
				r.at[f] = k + 1 // a server that ignores case uses this model, and its limits apply
			}
		}
	}()
	for k := object + 1; k < d.nodes[object].next; k = d.nodes[k+1].next {
		f := is(d.text(k, nil))
		if f == unread {
			// A server that ignores case or stops reading at a NUL takes this name for a known field.
			if f = is(folded(d.text(k, nil))); f != unread {
				cased = append(cased, k)
			}
			continue
		}
		if f == fMessages && r.beside(k) {
			continue
		}
		if r.seen&(1<<f) != 0 {
			return &RequestError{Field: prefix + string(d.text(k, nil)), Problem: "is given twice, or together with another field of the same meaning"}
		}
		r.seen |= 1 << f
		if d.kind(k+1) != kindNull {
			r.at[f] = k + 1
		}
	}
	return nil
}

// folded returns a name in lower case, up to the first NUL. encoding/json ignores case in this way, and servers written
// in C end the name at the NUL.
func folded(name []byte) []byte {
	name, _, _ = bytes.Cut(name, []byte{0})
	return bytes.ToLower(bytes.ToUpper(name))
}

// beside records a prompt that follows a prompt under another name, and reports whether it did. Servers differ in which
// prompt they use, so both are counted.
func (r *Request) beside(name uint32) bool {
	first := r.at[fMessages]
	if r.Family != OpenAI || first == 0 || r.doc.kind(name+1) == kindNull {
		return false
	}
	for _, n := range append(r.more, first) {
		if r.nameOf(n) == r.nameOf(name+1) {
			return false
		}
	}
	r.more = append(r.more, name+1)
	return true
}

func (r *Request) findNested() *RequestError {
	if n := r.at[fConfig]; n != 0 {
		name := r.nameOf(n)
		if r.doc.kind(n) != kindObject {
			return &RequestError{Field: name, Problem: "is not an object"}
		}
		if bad := r.find(n, name+".", r.inConfig); bad != nil {
			return bad
		}
	}
	if n := r.at[fStreamOptions]; n != 0 {
		if r.doc.kind(n) != kindObject {
			return &RequestError{Field: "stream_options", Problem: "is not an object"}
		}
		return r.find(n, "stream_options.", func(b []byte) field {
			if string(b) == "include_usage" {
				return fIncludeUsage
			}
			return unread
		})
	}
	return nil
}

// nameOf returns the name of the member whose value is n.
func (r *Request) nameOf(n uint32) string { return string(r.doc.text(n-1, nil)) }

func (r *Request) readModel() *RequestError {
	n := r.at[fModel]
	if r.from < r.to || r.above { // the path contains the model
		return nil
	}
	switch {
	case n == 0: // a stored prompt has its own model, and some servers have only one model
		return nil
	case r.doc.kind(n) != kindString:
		return &RequestError{Field: "model", Problem: "is not a string"}
	}
	r.Model = string(r.doc.text(n, nil))
	return nil
}

func (r *Request) readNumbers() *RequestError {
	var bad *RequestError
	count := func(f field) int64 {
		n, problem := r.count(f)
		if problem != nil && bad == nil {
			bad = problem
		}
		return n
	}
	most := max(count(fMaxOutput), count(fMaxCompletion), count(fMaxLegacy))
	r.Choices = max(count(fChoices), 1)
	r.MaxOutput = times(most, max(r.Choices, count(fBestOf)))
	r.Tools = r.some(fTools) || r.some(fFunctions)
	if n := r.at[fTemperature]; n != 0 && bad == nil {
		t, ok := r.doc.float(n)
		if !ok {
			return &RequestError{Field: r.nameOf(n), Problem: "is not a number"}
		}
		r.Temperature = &t
	}
	if bad == nil {
		bad = r.readStream()
	}
	return bad
}

func (r *Request) readStream() *RequestError {
	asked, bad := r.truth(fIncludeUsage)
	if bad != nil {
		return bad
	}
	stream, bad := r.truth(fStream)
	r.Stream = r.Stream || stream
	r.ReportsUsage = asked || !r.Stream || r.Family != OpenAI
	return bad
}

// count reads a quantity. A missing or negative quantity is 0. It also accepts numbers in quotes, which some servers
// accept and JSON of protocol buffers uses.
func (r *Request) count(f field) (int64, *RequestError) {
	n := r.at[f]
	if n == 0 {
		return 0, nil
	}
	v, ok := r.doc.count(n)
	if !ok {
		return 0, &RequestError{Field: r.nameOf(n), Problem: "is not a number"}
	}
	return max(v, 0), nil
}

// truth reads a boolean in any spelling that servers accept.
func (r *Request) truth(f field) (bool, *RequestError) {
	n := r.at[f]
	if n == 0 {
		return false, nil
	}
	switch k := r.doc.kind(n); {
	case k == kindTrue || k == kindFalse:
		return k == kindTrue, nil
	case k == kindNumber || k == kindString:
		switch string(r.doc.text(n, nil)) {
		case "true", "True", "TRUE", "1", "1.0", "yes", "on", "t", "y":
			return true, nil
		case "false", "False", "FALSE", "0", "0.0", "no", "off", "f", "n":
			return false, nil
		}
	}
	return false, &RequestError{Field: r.nameOf(n), Problem: "is neither true nor false"}
}

func (r *Request) some(f field) bool {
	n := r.at[f]
	if n == 0 {
		return false
	}
	return r.doc.nodes[n].next > n+1
}
