package plain

import (
	"bytes"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// A head is the head of a plain request.
type head struct {
	line           int // index in the list of first lines
	method, target string
	address        url.URL
	host           string
	header         http.Header // without Host, like net/http
	length         int         // of the body
	size           int         // of the head, including the empty line
}

const mostFields = 64

// parse parses the head at the beginning of b. It returns false if the head is incomplete or not plain.
func parse(b []byte, lines []string) (h head, ok bool) {
	end := bytes.Index(b, []byte("\r\n\r\n"))
	if end < 0 {
		return h, false
	}
	h.size = end + 4
	text := string(b[:end+2]) // each line ends with \r\n
	first, rest, _ := strings.Cut(text, "\r\n")
	if !h.first(first, lines) {
		return h, false
	}
	h.header = make(http.Header, 8)
	values := make([]string, 0, 8) // one array for all values
	for n := 0; rest != ""; n++ {
		var line string
		line, rest, _ = strings.Cut(rest, "\r\n")
		name, value, ok := field(line)
		if !ok || n == mostFields {
			return h, false
		}
		if _, twice := h.header[name]; twice || !h.means(name, value) {
			return h, false
		}
		values = append(values, value)
		h.header[name] = values[len(values)-1 : len(values) : len(values)]
	}
	if h.host == "" || h.length > mostBody {
		return h, false
	}
	delete(h.header, "Host")
	return h, true
}

// first parses the first line. If no lines are given, all of them may be plain.
func (h *head) first(line string, lines []string) bool {
	said, ok := strings.CutSuffix(line, " HTTP/1.1")
	if !ok {
		return false
	}
	if h.line = slices.Index(lines, said); h.line < 0 && len(lines) > 0 {
		return false
	}
	method, target, ok := strings.Cut(said, " ")
	i := slices.Index(methods, method)
	if !ok || i < 0 {
		return false
	}
	h.method, h.target = methods[i], strings.Clone(target) // a copy, like values, so that keeping one does not keep the whole head in memory
	return h.addresses()
}

// methods are the methods of plain requests.
var methods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodHead, http.MethodDelete, http.MethodPatch, http.MethodOptions}

// addresses parses the target: a path, and optionally a query, in printable ASCII without spaces.
func (h *head) addresses() bool {
	if h.target == "" || h.target[0] != '/' {
		return false
	}
	for i := range len(h.target) {
		if c := h.target[i]; c <= ' ' || c >= 0x7f || c == '#' {
			return false
		}
	}
	u, err := url.ParseRequestURI(h.target) // like net/http
	if err == nil {
		h.address = *u
	}
	return err == nil
}

// url returns a copy of the address.
func (h *head) url() *url.URL {
	u := h.address
	return &u
}

// field parses a header line: the canonical name and the value. It rejects continuation lines, spaces around the
// name, and bytes that are not text.
func field(line string) (name, value string, ok bool) {
	name, value, ok = strings.Cut(line, ":")
	if !ok || !httpguts.ValidHeaderFieldName(name) {
		return "", "", false
	}
	value = strings.Trim(value, " \t")
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c >= 0x7f {
			return "", "", false
		}
	}
	return textproto.CanonicalMIMEHeaderKey(name), strings.Clone(value), true
}

// means reports whether a request with this field is plain. Because each field may occur only once, the fields that
// frame the message or control the connection are unambiguous.
func (h *head) means(name, value string) bool {
	switch name {
	case "Host":
		h.host = value
		return hostName(value)
	case "Content-Length":
		return h.counts(value)
	case "Connection":
		return strings.EqualFold(value, "keep-alive")
	case "Transfer-Encoding", "Upgrade", "Expect", "Trailer", "Te", "Proxy-Connection", "Http2-Settings",
		"Pragma": // net/http derives a Cache-Control from it
		return false
	}
	return true
}

// counts parses the length of the body.
func (h *head) counts(value string) bool {
	if value == "" || len(value) > 5 {
		return false
	}
	for i := range len(value) {
		if value[i] < '0' || value[i] > '9' {
			return false
		}
		h.length = 10*h.length + int(value[i]-'0')
	}
	return true
}

// hostName reports whether a host is a name or an address, optionally with a port, in common characters.
func hostName(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c|0x20 && c|0x20 <= 'z', '0' <= c && c <= '9', c == '.', c == '-', c == ':', c == '[', c == ']', c == '_':
		default:
			return false
		}
	}
	return s != ""
}

// memory contains the last head for each first line, because clients often repeat the same bytes. Identical heads
// need not be parsed again. The header maps are shared, and must not be changed.
type memory []remembered

type remembered struct {
	text string
	head
}

// parse is parse for the next request of a connection.
func (m *memory) parse(b []byte, lines []string) (h head, ok bool) {
	for i := range *m {
		if r := &(*m)[i]; r.text != "" && len(b) >= len(r.text) && string(b[:len(r.text)]) == r.text {
			return r.head, true
		}
	}
	if h, ok = parse(b, lines); !ok {
		return h, false
	}
	if len(lines) == 0 {
		return h, true
	}
	if *m == nil {
		*m = make(memory, len(lines))
	}
	(*m)[h.line] = remembered{string(b[:h.size]), h}
	return h, true
}
