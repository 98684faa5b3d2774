package llm

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"slices"
	"strings"
	"sync"
)

// Key returns a hash of everything that the answer may depend on: family, operation, model and body. It excludes members
// that only control delivery or identify the caller: stream, stream_options, user, metadata, safety_identifier,
// prompt_cache_key, and store except in the Responses API. White space, the order of members and the spelling of numbers
// and strings do not change the hash. Path prefixes, such as a deployment's region, and the caller's identity are not
// part of it.
func (r *Request) Key() [32]byte { return r.key(nil, 0) }

// LooseKey is like Key, but ignores case and white space in the users' questions. For requests that may call tools it
// returns Key, because their text is not only a question.
func (r *Request) LooseKey() [32]byte {
	if r.Tools {
		return r.Key()
	}
	r = r.open()
	return r.key(r.said(), 0)
}

// key returns a hash of the request. The strings in loose ignore case and white space. The string without is left out,
// unless it is 0.
func (r *Request) key(loose []uint32, without uint32) [32]byte {
	r = r.open()
	w := canonicals.Get().(*canonical)
	defer canonicals.Put(w)
	b := w.buf[:0]
	w.sum = sha256.New()
	for _, s := range []string{string(r.Family), r.Operation, r.Model} {
		b = appendCounted(b, s)
	}
	b = r.appendQuery(b)
	if len(r.doc.nodes) == 0 {
		b = w.flush(b)
		_, _ = w.sum.Write(r.doc.body)
	} else {
		w.d, w.skip = &r.doc, r.unkeyed()
		w.loose, w.without = loose, without
		b = w.value(b, 0)
		w.d, w.loose, w.without = nil, nil, 0
	}
	if w.buf = b; cap(b) > 1<<20 || cap(w.names) > 1<<12 {
		w.buf, w.names = nil, nil // do not keep large buffers for small requests
	}
	_, _ = w.sum.Write(b)
	return [32]byte(w.sum.Sum(nil))
}

// mostWritten is the number of bytes of the canonical form that are buffered before they are added to the hash.
const mostWritten = 64 << 10

func (w *canonical) flush(b []byte) []byte {
	_, _ = w.sum.Write(b)
	return b[:0]
}

func appendCounted[T string | []byte](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// appendQuery appends the query parameters that select the contents of the answer: Google's fields.
func (r *Request) appendQuery(b []byte) []byte {
	for p := range strings.SplitSeq(r.query, "&") {
		if strings.HasPrefix(p, "fields=") || strings.HasPrefix(p, "$fields=") || strings.HasPrefix(p, "%24fields=") {
			b = appendCounted(b, p)
		}
	}
	return append(b, 0)
}

// unkeyed returns the body's members that do not change the answer. The hash contains the model separately. For Invoke,
// only members with the same meaning for all vendors are excluded.
func (r *Request) unkeyed() []string {
	switch {
	case r.Operation == "other":
		return nil
	case r.Family == OpenAI:
		return []string{"model", "stream", "stream_options", "user", "metadata", "safety_identifier", "prompt_cache_key", "store"}
	case r.Family == Responses: // store counts: a response that is not stored cannot be continued
		return []string{"model", "stream", "stream_options", "user", "metadata", "safety_identifier", "prompt_cache_key"}
	case r.Family == Anthropic:
		return []string{"model", "stream", "metadata"}
	case r.Family == Gemini:
		return []string{"labels"}
	case r.Family == Converse:
		return []string{"requestMetadata"}
	}
	return []string{"stream", "stream_options", "user", "metadata"}
}

// A canonical writes values so that two values have the same bytes if and only if they are equal. Each value starts with
// its kind, variable-length data has a length prefix, and members are sorted by name.
type canonical struct {
	d       *document
	skip    []string // members of the root object to leave out
	buf     []byte
	sum     hash.Hash // hash of the bytes that are no longer in buf
	loose   []uint32  // sorted nodes of strings whose case and white space are ignored
	without uint32    // string node to leave out; 0 if none
	names   []named   // members of the objects being written, inner objects after outer ones
}

type named struct {
	name  []byte
	value uint32
}

var canonicals = sync.Pool{New: func() any { return new(canonical) }}

func (w *canonical) value(b []byte, n uint32) []byte {
	v := &w.d.nodes[n]
	if len(b) > mostWritten {
		b = w.flush(b)
	}
	if n == w.without && n > 0 {
		return append(b, '?') // no value starts with this byte
	}
	b = append(b, '0'+byte(v.kind))
	switch v.kind {
	case kindObject:
		return w.object(b, n)
	case kindArray:
		for e := n + 1; e < v.next; e = w.d.nodes[e].next {
			b = w.value(b, e)
		}
		return append(b, 'z')
	case kindString:
		if _, ok := slices.BinarySearch(w.loose, n); ok {
			return appendCounted(b, strings.ToLower(strings.Join(strings.Fields(string(w.d.text(n, nil))), " ")))
		}
		if s := w.d.body[v.start:v.end]; !v.escaped && len(s) > mostWritten {
			b = w.flush(binary.AppendUvarint(b, uint64(len(s))))
			_, _ = w.sum.Write(s)
			return b
		} else if !v.escaped {
			return appendCounted(b, s)
		}
		b = binary.AppendUvarint(b, uint64(w.d.size(n)))
		return unescape(b, w.d.body[v.start:v.end])
	case kindNumber:
		return appendNumber(b, w.d.body[v.start:v.end])
	}
	return b
}

// said returns the sorted nodes of strings in messages that users or the model wrote. Instructions and tool input are
// excluded.
func (r *Request) said() (nodes []uint32) {
	for p := range r.pieces() {
		if p.what == isText && p.part == InMessages && p.node > 0 && r.doc.kind(p.node) == kindString && spoken[string(r.doc.name(p.node))] {
			nodes = append(nodes, p.node)
		}
	}
	slices.Sort(nodes)
	return nodes
}

// spoken lists the members that contain text of a message.
var spoken = map[string]bool{"content": true, "text": true, "prompt": true, "input": true, "inputText": true}

// name returns the name of a member, given its value's node. For a value that is not a member, the result is arbitrary.
func (d *document) name(value uint32) []byte {
	if d.kind(value-1) != kindString {
		return nil
	}
	return d.text(value-1, nil)
}

// room allocates space for the names of a large object in one step. Growing a slice gradually would keep two copies of
// it for a moment.
func (w *canonical) room(n uint32) {
	if int(w.d.nodes[n].next-n) <= measured/int(NodeSize) {
		return
	}
	names := 0
	for k := n + 1; k < w.d.nodes[n].next; k = w.d.nodes[k+1].next {
		names++
	}
	if need := len(w.names) + names; need > cap(w.names) {
		w.names = append(make([]named, 0, need), w.names...)
	}
}

func (w *canonical) object(b []byte, n uint32) []byte {
	from := len(w.names)
	w.room(n)
	for k := n + 1; k < w.d.nodes[n].next; k = w.d.nodes[k+1].next {
		name := w.d.text(k, nil)
		if n == 0 && slices.Contains(w.skip, string(name)) {
			continue
		}
		w.names = append(w.names, named{name: name, value: k + 1})
	}
	slices.SortStableFunc(w.names[from:], func(x, y named) int { return bytes.Compare(x.name, y.name) })
	for i := from; i < len(w.names); i++ {
		m := w.names[i]
		b = w.value(appendCounted(append(b, 'n'), m.name), m.value)
	}
	clear(w.names[from:])
	w.names = w.names[:from]
	return append(b, 'z')
}
