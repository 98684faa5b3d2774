package mcpdialect

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"iter"
	"net/http"
	"strings"
)

// Codes of errors.
const (
	parseError     = -32700
	invalidRequest = -32600
	invalidParams  = -32602
	internalError  = -32603
	headerMismatch = -32020
	limited        = -32029 // not standardized; several servers use it
)

// A message is a JSON-RPC message. The zero message is a response.
type message struct {
	method string // "" for a response
	name   string // of the tool, prompt or resource
	id     []byte // unchanged; nil if the message has no ID
}

// free reports whether a message costs nothing. A call without an ID is no notification, because some servers run it.
func (m *message) free() bool {
	switch m.method {
	case "", "initialize", "ping", "tools/list", "server/discover":
		return true
	}
	return strings.HasPrefix(m.method, "notifications/")
}

// reads reports whether a message only lists or reads.
func (m *message) reads() bool {
	switch m.method {
	case "ping", "server/discover", "resources/read", "prompts/get", "tasks/get":
		return true
	}
	return strings.HasSuffix(m.method, "/list")
}

// nameField returns the parameter that contains the name, or "" if the method names nothing.
func (m *message) nameField() string {
	switch m.method {
	case toolCall, "prompts/get":
		return "name"
	case "resources/read":
		return "uri"
	}
	return ""
}

// matches reports whether the headers of a request, if it has them, contain its method and name. The specification does not
// define headers of responses and notifications.
func (m *message) matches(h http.Header) bool {
	if m.method == "" || strings.HasPrefix(m.method, "notifications/") {
		return true
	}
	for _, v := range h["Mcp-Method"] {
		if v != m.method {
			return false
		}
	}
	if m.nameField() == "" {
		return true
	}
	for _, v := range h["Mcp-Name"] {
		if name, ok := decodeName(v); !ok || name != m.name {
			return false
		}
	}
	return true
}

// decodeName returns the name in a header, which is Base64 if it cannot be written in ASCII.
func decodeName(v string) (string, bool) {
	coded, ok := strings.CutPrefix(v, "=?base64?")
	if !ok {
		return v, true
	}
	coded, ok = strings.CutSuffix(coded, "?=")
	name, err := base64.StdEncoding.DecodeString(coded)
	return string(name), ok && err == nil
}

// A rpcError explains why a body contains no valid messages.
type rpcError struct {
	code int
	text string
}

// messagesOf reads the messages of a body. It returns the first message also with an error, as far as it was read.
func messagesOf(body []byte) (all []message, batch bool, err *rpcError) {
	if !json.Valid(body) {
		return nil, false, &rpcError{parseError, "the body is not JSON"}
	}
	at := skipSpace(body, 0)
	if body[at] != '[' {
		m, err := messageOf(body[at:])
		return []message{m}, false, err
	}
	for item := range items(body[at:]) {
		m, err := messageOf(item)
		if err != nil {
			return nil, true, err
		}
		all = append(all, m)
	}
	if len(all) == 0 {
		err = &rpcError{invalidRequest, "the batch is empty"}
	}
	return all, true, err
}

// messageOf reads one message.
func messageOf(b []byte) (m message, err *rpcError) {
	if b[0] != '{' {
		return m, &rpcError{invalidRequest, "the body is not a JSON-RPC message"}
	}
	found, ok := pick(b, "method", "id", "params")
	method, id, params := found[0], found[1], found[2]
	if id != nil && !bytes.ContainsAny(id[:1], `{[tf`) {
		m.id = id
	}
	switch {
	case !ok:
		return m, &rpcError{invalidRequest, "method, id and params must occur once, in lower case"}
	case id != nil && m.id == nil:
		return m, &rpcError{invalidRequest, "the id must be a string or a number"}
	case method == nil:
		return m, nil
	case method[0] != '"':
		return m, &rpcError{invalidRequest, "the method must be a string"}
	}
	m.method = unquote(method)
	field := m.nameField()
	if field == "" || params == nil || params[0] != '{' {
		return m, nil
	}
	switch found, ok = pick(params, field); {
	case !ok:
		return m, &rpcError{invalidParams, field + " must occur once in params, in lower case"}
	case found[0] != nil && found[0][0] == '"':
		m.name = unquote(found[0])
	}
	return m, nil
}

// pick returns the values of some members of an object; nil for missing ones. It returns false if a member occurs twice or in
// another case, because servers differ in which one they read.
func pick(b []byte, names ...string) (values [3][]byte, ok bool) {
	ok = true
	for name, value := range members(b) {
		is := unquote(name)
		for i, want := range names {
			if strings.EqualFold(is, want) {
				ok = ok && is == want && values[i] == nil
				values[i] = value
			}
		}
	}
	return values, ok
}

// unquote returns the value of a JSON string.
func unquote(b []byte) (s string) {
	if bytes.IndexByte(b, '\\') < 0 {
		return strings.ToValidUTF8(string(b[1:len(b)-1]), "\uFFFD")
	}
	_ = json.Unmarshal(b, &s) // the body is valid
	return s
}

// members iterates over the members of an object, and items over the elements of an array. b begins with the bracket and is
// valid JSON.
func members(b []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		for i := skipSpace(b, 1); b[i] != '}'; {
			end := skipValue(b, i)
			at := skipSpace(b, skipSpace(b, end)+1) // after the colon
			after := skipValue(b, at)
			if !yield(b[i:end], b[at:after]) {
				return
			}
			if i = skipSpace(b, after); b[i] == ',' {
				i = skipSpace(b, i+1)
			}
		}
	}
}

func items(b []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for i := skipSpace(b, 1); b[i] != ']'; {
			end := skipValue(b, i)
			if !yield(b[i:end]) {
				return
			}
			if i = skipSpace(b, end); b[i] == ',' {
				i = skipSpace(b, i+1)
			}
		}
	}
}

// skipSpace returns the index of the first byte from i that is not white space.
func skipSpace(b []byte, i int) int {
	for b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r' {
		i++
	}
	return i
}

// skipValue returns the index after the value that begins at i.
func skipValue(b []byte, i int) int {
	for depth := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			for i++; b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
			continue
		case '}', ']':
			depth--
		case ',', ':', ' ', '\n', '\t', '\r':
			continue
		default:
			for i+1 < len(b) && strings.IndexByte(",]} \n\t\r", b[i+1]) < 0 {
				i++
			}
		}
		if depth == 0 {
			return i + 1
		}
	}
	return i
}
