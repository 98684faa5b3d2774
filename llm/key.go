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

// Key is a hash of all that the answer may depend on: family, operation, model and the
// body, apart from what says only how the answer is to be sent or whose it is (stream,
// stream_options, user, metadata, safety_identifier, prompt_cache_key; store, but for a Response). It is
// the same however the body is spaced, in whichever order its members stand, and
// however its numbers and strings are spelled. Prefixes of the path, such as a
// deployment's region, are not in it, and nor is who calls.
func (r *Request) Key() [32]byte { return r.key(nil, 0) }

// LooseKey is Key, but that the words of questions may be in any case and spaced in any way. What
// may call tools has no other key than Key: what it says is no mere question.
func (r *Request) LooseKey() [32]byte {
	if r.Tools {
		return r.Key()
	}
	r = r.open()
	return r.key(r.said(), 0)
}

// key is a hash of the request, in which some strings are loose and one is left out, none if that is 0.
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
		w.buf, w.names = nil, nil // keep no giant for requests that are small
	}
	_, _ = w.sum.Write(b)
	return [32]byte(w.sum.Sum(nil))
}

// mostWritten is how much of the canonical form is held before it is added to the hash.
const mostWritten = 64 << 10

// flush adds to the hash what was written.
func (w *canonical) flush(b []byte) []byte {
	_, _ = w.sum.Write(b)
	return b[:0]
}

func appendCounted[T string | []byte](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// appendQuery appends those parameters that choose what the answer holds: Google's
// fields.
func (r *Request) appendQuery(b []byte) []byte {
	for p := range strings.SplitSeq(r.query, "&") {
		if strings.HasPrefix(p, "fields=") || strings.HasPrefix(p, "$fields=") || strings.HasPrefix(p, "%24fields=") {
			b = appendCounted(b, p)
		}
	}
	return append(b, 0)
}

// unkeyed are the members of the body that make no difference to the answer. The model
// is said apart; in another vendor's words of Invoke nothing is known.
func (r *Request) unkeyed() []string {
	switch {
	case r.Operation == "other":
		return nil
	case r.Family == OpenAI:
		return []string{"model", "stream", "stream_options", "user", "metadata", "safety_identifier", "prompt_cache_key", "store"}
	case r.Family == Responses: // one that is not stored cannot be gone on from
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

// A canonical writes values so that two are the same bytes if and only if they say the
// same: each begins with its kind, what can vary in length is counted, members are
// sorted by name.
type canonical struct {
	d       *document
	skip    []string // of the outermost object
	buf     []byte
	sum     hash.Hash // of what is no longer in buf
	loose   []uint32  // strings that are the same however they are spaced, and in whichever case; in order
	without uint32    // a string that is left out; 0 if none is
	names   []named   // of the objects that are being written, the inner behind the outer
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
		return append(b, '?') // what no value begins with
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

// said are the strings in which people say something to the model: not its instructions, nor what tools were given.
func (r *Request) said() (nodes []uint32) {
	for p := range r.pieces() {
		if p.what == isText && p.part == InMessages && p.node > 0 && r.doc.kind(p.node) == kindString && spoken[string(r.doc.name(p.node))] {
			nodes = append(nodes, p.node)
		}
	}
	slices.Sort(nodes)
	return nodes
}

// spoken are the members that hold what somebody says.
var spoken = map[string]bool{"content": true, "text": true, "prompt": true, "input": true, "inputText": true}

// name is that of a member by its value; what is no member may have any.
func (d *document) name(value uint32) []byte {
	if d.kind(value-1) != kindString {
		return nil
	}
	return d.text(value-1, nil)
}

// room makes room for the names of a large object at once: what grows bit by bit is held twice while it does.
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
