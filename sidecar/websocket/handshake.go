package websocket

import (
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"strings"

	ws "github.com/coder/websocket"
	"golang.org/x/net/http/httpguts"

	"github.com/seed1158cd35/weir/internal/refuse"
)

// Wants reports whether a request asks to switch to WebSocket.
func Wants(r *http.Request) bool {
	return httpguts.HeaderValuesContainsToken(r.Header["Connection"], "Upgrade") && httpguts.HeaderValuesContainsToken(r.Header["Upgrade"], "websocket")
}

// Problem returns the mistake in such a request before any limit is checked; nil if there is none.
func Problem(w http.ResponseWriter, r *http.Request) *refuse.Facts {
	bad := func(status int, message string) *refuse.Facts {
		return &refuse.Facts{Status: status, Code: refuse.ValidationError, Message: message, Final: true}
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(r.Header.Get("Sec-Websocket-Key")))
	switch {
	case r.Method != http.MethodGet || !r.ProtoAtLeast(1, 1) || r.ProtoMajor != 1:
		return bad(http.StatusBadRequest, "a WebSocket starts with a GET request of HTTP/1.1")
	case r.ContentLength != 0: // the upstream would read it as messages, which no limit has admitted
		w.Header().Set("Connection", "close") // otherwise the server would read the body before it responds
		return bad(http.StatusBadRequest, "a WebSocket starts with a request without a body")
	case strings.TrimSpace(r.Header.Get("Sec-Websocket-Version")) != version:
		w.Header().Set("Sec-WebSocket-Version", version)
		return bad(http.StatusUpgradeRequired, "only version 13 of WebSocket is supported")
	case len(r.Header["Sec-Websocket-Key"]) != 1 || err != nil || len(key) != 16:
		return bad(http.StatusBadRequest, "want one Sec-WebSocket-Key, with 16 bytes in base64")
	}
	return nil
}

const version = "13"

// handshake lists the header fields, except Connection and Upgrade, that belong to one connection only. Extensions
// are not negotiated: weir reads and writes each message, and compressing it again for each side is not worth its
// cost.
var handshake = []string{"Sec-Websocket-Key", "Sec-Websocket-Version", "Sec-Websocket-Extensions", "Sec-Websocket-Protocol"}

// ErrHandshake means that the upstream's response was not a valid WebSocket handshake. The response may contain a
// secret.
var ErrHandshake = errors.New("the upstream did not accept the WebSocket handshake")

var errRefused = errors.New("refused")

// Dial opens a connection to an upstream with a request, which it may change, and which send sends. If the upstream
// declines, conn is nil and resp is its response for the caller. Otherwise resp has the headers of its response.
func Dial(out *http.Request, send func(*http.Request) (*http.Response, error)) (conn *Conn, resp *http.Response, err error) {
	protocols := listed(out.Header["Sec-Websocket-Protocol"])
	for _, name := range handshake {
		out.Header.Del(name)
	}
	sender := &once{out: out, send: send}
	c, yes, err := ws.Dial(out.Context(), "http://upstream/", &ws.DialOptions{HTTPClient: &http.Client{Transport: sender}, Subprotocols: protocols})
	switch {
	case sender.err != nil:
		return nil, nil, sender.err
	case sender.no != nil:
		return nil, sender.no, nil
	case err != nil:
		return nil, nil, ErrHandshake
	}
	for _, name := range append(handshake, "Sec-Websocket-Accept") {
		yes.Header.Del(name)
	}
	return &Conn{c, sender.source}, yes, nil
}

// once sends the request instead of the library's, with the fields that the library has made.
type once struct {
	out  *http.Request
	send func(*http.Request) (*http.Response, error)
	no   *http.Response
	err  error

	source *source
}

// RoundTrip implements http.RoundTripper.
func (o *once) RoundTrip(r *http.Request) (*http.Response, error) {
	for name, values := range r.Header {
		o.out.Header[name] = values
	}
	var resp *http.Response
	if resp, o.err = o.send(o.out); o.err != nil {
		return nil, o.err
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		o.no = resp
		return nil, errRefused
	}
	if b, ok := resp.Body.(io.ReadWriteCloser); ok {
		o.source = &source{from: b}
		resp.Body = &body{b, o.source}
	}
	return resp, nil
}

// Accept accepts the caller's handshake, with the subprotocol that the upstream has chosen. The upstream has checked
// the Origin.
func Accept(w http.ResponseWriter, r *http.Request, subprotocol string) (*Conn, error) {
	o := &ws.AcceptOptions{InsecureSkipVerify: true}
	if subprotocol != "" {
		o.Subprotocols = []string{subprotocol}
	}
	t := &taker{ResponseWriter: w}
	c, err := ws.Accept(t, r, o)
	if err != nil {
		return nil, err
	}
	return &Conn{c, &t.source}, nil
}

// listed returns the elements of a header field that is a list.
func listed(values []string) (all []string) {
	for _, v := range values {
		for t := range strings.SplitSeq(v, ",") {
			if t = strings.TrimSpace(t); t != "" {
				all = append(all, t)
			}
		}
	}
	return all
}
