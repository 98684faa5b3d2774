package classify_test

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"net/http"
	"testing"

	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/outcome/classify"
)

// awsMessage returns a message of an AWS event stream, with headers and a payload.
func awsMessage(payload string, headers ...string) string {
	var h []byte
	for i := 0; i < len(headers); i += 2 {
		h = append(append(h, byte(len(headers[i]))), headers[i]...)
		h = append(h, 7)
		h = binary.BigEndian.AppendUint16(h, uint16(len(headers[i+1])))
		h = append(h, headers[i+1]...)
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(12+len(h)+len(payload)+4))
	b = binary.BigEndian.AppendUint32(b, uint32(len(h)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	return string(append(append(b, h...), payload+"\x00\x00\x00\x00"...))
}

// frame returns a frame of gRPC-Web and Connect.
func frame(flags byte, payload string) string {
	return string(binary.BigEndian.AppendUint32([]byte{flags}, uint32(len(payload)))) + payload
}

func TestStreamFindsErrors(t *testing.T) {
	good := awsMessage("hello", ":message-type", "event", ":event-type", "chunk")
	for _, c := range []struct {
		kind, body string
		class      outcome.Class // Unknown: no error
		code       string
	}{
		{"text/event-stream", "data: a\n\nevent: error\ndata: gone\n\n", outcome.Failed, classify.ErrorEvent},
		{"text/event-stream; charset=utf-8", "data: a\r\n\r\nevent:error\r\ndata:{\"message\":\"x\",\"code\":\"SlowDown\"}\r\n\r\n", outcome.Throttled, "SlowDown"},
		{"text/event-stream", "data: a\r\revent: error\r\r", outcome.Failed, classify.ErrorEvent},
		{"text/event-stream", "event: error\ndata: no end", outcome.Failed, classify.ErrorEvent},
		{"text/event-stream", "data: x\nevent: error\n\n", outcome.Failed, classify.ErrorEvent},
		{"text/event-stream", "data: {\"error\":{\"message\":\"overloaded\",\"type\":\"server_error\"}}\n\ndata: [DONE]\n\n", outcome.Failed, ""},
		{"text/event-stream", "data: { \"error\" : \"gone\"}\n\n", outcome.Failed, ""},
		{"text/event-stream", "data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n", outcome.Failed, ""},
		{"text/event-stream", "data: {\"error\":null}\n\ndata: the error was {\"error\":{}}\n\nevent: errors\ndata: x\n\n", outcome.Unknown, ""},
		{"text/event-stream", "data: {\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32601}}\n\n", outcome.Unknown, ""},
		{"text/event-stream", "data: {\"error\":{\"code\":-32601},\"id\":1,\"jsonrpc\":\"2.0\"}\n\n", outcome.Unknown, ""},
		{"text/event-stream", ": event: error\ndata: event: error\n\n", outcome.Unknown, ""},
		{"application/x-ndjson", "{\"a\":1}\n{\"error\":\"model crashed\"}\n", outcome.Failed, ""},
		{"application/x-ndjson", "{\"a\":1}\n{\"error\":\"no line end\"}", outcome.Failed, ""},
		{"application/json-seq", "\x1e{\"a\":1}\n\x1e{\"error\":{\"code\":\"InternalError\"}}\n", outcome.Failed, "InternalError"},
		{"application/x-ndjson", "{\"error\":\"\"}\n{\"error\":{}}\n{\"errors\":1}\n", outcome.Unknown, ""},
		{"application/vnd.amazon.eventstream", good + awsMessage("{}", ":message-type", "exception", ":exception-type", "ThrottlingException"), outcome.Throttled, "ThrottlingException"},
		{"application/vnd.amazon.eventstream", good + awsMessage("{}", ":exception-type", "internalServerException", ":message-type", "exception"), outcome.Failed, "internalServerException"},
		{"application/vnd.amazon.eventstream", good + awsMessage("", ":message-type", "error", ":error-code", "InternalError", ":error-message", "m"), outcome.Failed, "InternalError"},
		{"application/json; charset=UTF-8", "[{\n  \"candidates\": [{\"text\": \"\\\"}]\"}]\n}\n,\r\n{\n  \"error\": {\n    \"code\": 503,\n    \"message\": \"overloaded\",\n    \"status\": \"UNAVAILABLE\"\n  }\n}\n]\n", outcome.Failed, "UNAVAILABLE"},
		{"application/json", `[{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED","details":[{"retryDelay":"3s"}]}}]`, outcome.Throttled, "RESOURCE_EXHAUSTED"},
		{"application/json", `[{"error":{"code":404,"message":"m","status":"NOT_FOUND"}},{"result":1}]`, outcome.Unknown, ""},
		{"application/json", `[{"result":1},{"error":{"message":"one of a batch"}}]`, outcome.Unknown, ""},
		{"application/json", `[{"jsonrpc":"2.0","error":{"code":-32601}},{"jsonrpc":"2.0","error":{"code":4}}]`, outcome.Unknown, ""},
		{"application/json", "{\"result\":{}}\n{\"error\":{\"code\":14,\"message\":\"gone\",\"details\":[]}}\n", outcome.Failed, classify.ErrorEvent},
		{"application/json", "{\"status\":\"Pulling\"}\r\n{\"errorDetail\":{\"message\":\"m\"},\"error\":\"m\"}\r\n", outcome.Failed, ""},
		{"application/json", `{"error":{"code":14,"message":"the only document"}}`, outcome.Unknown, ""},
		{"application/json", `{"a":"{\"error\":{\"code\":503}}"} {"b":1}`, outcome.Unknown, ""},
		{"application/json", `["}","{\"error\"",{"a":[1,{}]}]`, outcome.Unknown, ""},
		{"application/vnd.amazon.eventstream", good + good, outcome.Unknown, ""},
		{"application/vnd.amazon.eventstream", "no frames at all, whatever the header", outcome.Unknown, ""},
		{"application/octet-stream", good + awsMessage("", ":message-type", "error", ":error-code", "InternalError", ":error-message", "m"), outcome.Failed, "InternalError"}, // SelectObjectContent
		{"application/x-amz-json-1.1", good + awsMessage("{}", ":message-type", "exception", ":exception-type", "LimitExceededException"), outcome.Throttled, ""},
		{"", good + awsMessage("{}", ":message-type", "exception", ":exception-type", "InternalFailureException"), outcome.Failed, ""},
		{"application/octet-stream", good + good[:20], outcome.Failed, classify.CutStream},
		{"application/octet-stream", good, outcome.Unknown, ""},
		{"application/octet-stream", "short", outcome.Unknown, ""},
		{"application/octet-stream", "other bytes of any length, which are not frames", outcome.Unknown, ""},
		{"application/x-amz-json-1.1", "{}", outcome.Unknown, ""},
		{"application/grpc-web+proto", frame(0, "data") + frame(0x80, "grpc-status: 14\r\ngrpc-message: x\r\n"), outcome.Failed, "grpc-status 14"},
		{"application/grpc-web", frame(0x80, "Grpc-Status:8\r\n"), outcome.Throttled, "grpc-status 8"},
		{"application/grpc-web", frame(0, "data") + frame(0x80, "grpc-status: 0\r\n"), outcome.Unknown, ""},
		{"application/connect+json", frame(0, "{}") + frame(2, `{"error":{"code":"unavailable"}}`), outcome.Failed, ""},
		{"application/connect+proto", frame(0, "{}") + frame(2, `{}`), outcome.Unknown, ""},
		{"application/connect+proto", frame(0, "{}"), outcome.Failed, classify.CutStream},
		{"application/grpc-web", frame(0, "data"), outcome.Failed, classify.CutStream},
		{"application/grpc-web", frame(0, "data") + frame(0x80, "grpc-status: 0\r\n")[:8], outcome.Failed, classify.CutStream},
		{"application/grpc-web-text", base64.StdEncoding.EncodeToString([]byte(frame(0, "data"))) + base64.StdEncoding.EncodeToString([]byte(frame(0x80, "grpc-status: 14"))), outcome.Failed, "grpc-status 14"},
		{"application/grpc-web-text+proto", base64.StdEncoding.EncodeToString([]byte(frame(0, "data") + frame(0x80, "grpc-status: 0"))), outcome.Unknown, ""},
		{"application/grpc-web-text", "!!!!", outcome.Unknown, ""},
		{"application/vnd.amazon.eventstream", good + good[:20], outcome.Failed, classify.CutStream},
		{"application/vnd.amazon.eventstream", good + good[:5], outcome.Failed, classify.CutStream},
		{"text/event-stream", "\ufeffevent: error\ndata: x\n\n", outcome.Failed, classify.ErrorEvent},
		{"text/event-stream", "event: Error\ndata: x\n\n", outcome.Failed, classify.ErrorEvent},
		{"text/event-stream", "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"server_error\"}}}\n\n", outcome.Failed, "server_error"},
		{"text/event-stream", "data: {\"object\":\"error\",\"message\":\"x\",\"code\":400}\n\n", outcome.Failed, ""},
		{"text/event-stream", "data: {\"id\":\"1\",\"error\":{\"code\":\"server_error\",\"message\":\"x\"},\"choices\":[]}\n\n", outcome.Failed, ""},
		{"text/event-stream", "data: {\"id\":\"1\",\"error\":null}\n\ndata: {\"id\":1,\"error\":{}}\n\ndata: {\"id\":1,\"a\":{\"error\":{\"code\":1}}}\n\ndata: {\"id\":1,\"error\":\"as data\"}\n\n", outcome.Unknown, ""},
		{"text/event-stream", "data: {\"id\":1,\"error\":{\"code\":-32601},\"jsonrpc\":\"2.0\"}\n\n", outcome.Unknown, ""},
	} {
		for step := 1; step <= len(c.body); step += 1 + len(c.body)/3 {
			h := http.Header{"Content-Type": {c.kind}}
			if c.kind == "" {
				h = http.Header{"X-Amz-Request-Id": {"a"}}
			}
			s := classify.NewStream(h)
			for i := 0; i < len(c.body); i += step {
				s.Feed([]byte(c.body[i:min(i+step, len(c.body))]))
			}
			s.End()
			o, ok := s.Failed()
			if ok != (c.class != outcome.Unknown) || o.Class != c.class || c.code != "" && o.Code != c.code {
				t.Errorf("%s %q, %d bytes at a time: %v %+v, want %v %s", c.kind, c.body, step, ok, o, c.class, c.code)
			}
		}
	}
}

func TestNewStreamIgnoresOtherFormats(t *testing.T) {
	for _, h := range []http.Header{
		nil, {"Content-Type": {"application/json"}, "Content-Length": {"2"}}, {"Content-Type": {"text/plain"}},
		{"Content-Type": {"application/json"}, "Last-Modified": {"Fri, 20 Nov 2026 11:00:00 GMT"}},
		{"Content-Type": {"text/event-stream"}, "Content-Encoding": {"gzip"}},
		{"Content-Type": {"application/octet-stream"}, "Etag": {`"a"`}}, {"Content-Type": {"binary/octet-stream"}, "Last-Modified": {"Fri, 20 Nov 2026 11:00:00 GMT"}},
	} {
		if classify.NewStream(h) != nil {
			t.Errorf("%v has a Stream", h)
		}
	}
}

func FuzzStream(f *testing.F) {
	f.Add("text/event-stream", "event: error\r\ndata: {\"error\":{}}\r\n\r\n")
	f.Add("application/vnd.amazon.eventstream", awsMessage("x", ":message-type", "exception"))
	f.Add("application/grpc-web", frame(0x80, "grpc-status: 14\r\n"))
	f.Fuzz(func(t *testing.T, kind, body string) {
		whole, apart := classify.NewStream(http.Header{"Content-Type": {kind}}), classify.NewStream(http.Header{"Content-Type": {kind}})
		if whole == nil {
			return
		}
		whole.Feed([]byte(body))
		whole.End()
		for i := range body {
			apart.Feed([]byte(body[i : i+1]))
		}
		apart.End()
		a, _ := whole.Failed()
		b, _ := apart.Failed()
		if a.Class != b.Class || a.Code != b.Code {
			t.Errorf("%s %q: %+v whole, %+v byte by byte", kind, body, a, b)
		}
	})
}
