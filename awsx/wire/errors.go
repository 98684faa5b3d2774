package wire

import (
	"cmp"
	"encoding/json"
	"encoding/xml"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/internal/refuse"
)

// An Error is an error in a form that the clients of a service understand.
type Error struct {
	Kind       refuse.Kind
	Message    string
	ID         string        // of the request
	RetryAfter time.Duration // 0 if unknown

	// Final tells the client not to retry. The SDKs retry throttles, unavailability, and the statuses 500, 502, 503 and 504. Some
	// also retry 429. So a final error is a 400 with a code that no SDK retries.
	Final bool
}

// longestBackoff is the maximum delay between attempts of the SDKs (20 s, November 2026). A client that has to wait longer should
// not retry.
const longestBackoff = 20 * time.Second

// ErrorOf returns weir's own error for the request with this ID.
func ErrorOf(f *refuse.Facts, id string) Error {
	return Error{Kind: f.Kind(), Message: f.Message, ID: id, RetryAfter: f.Wait, Final: f.Final || f.Wait > longestBackoff}
}

// A word is a code with its status.
type word struct {
	status int
	code   string
}

// throttle is the code with which a service throttles, and which its clients retry. Codes are from the API references and the
// retry lists of the SDKs (November 2026).
var throttle = map[string]word{
	"s3": {503, "SlowDown"}, "s3express": {503, "SlowDown"}, "ec2": {503, "RequestLimitExceeded"},
	"lambda": {429, "TooManyRequestsException"}, "sqs": {403, "RequestThrottled"},
	"dynamodb": {400, "ThrottlingException"}, "kinesis": {400, "ProvisionedThroughputExceededException"},
}

// words are the codes of a protocol.
type words struct{ throttled, tooLarge, invalid word }

var byJSON = words{word{400, "ThrottlingException"}, word{413, "RequestEntityTooLargeException"}, word{400, "ValidationException"}}

// byProtocol has the codes of protocols that differ from byJSON.
var byProtocol = map[Protocol]words{
	S3:       {word{503, "SlowDown"}, word{400, "EntityTooLarge"}, word{400, "InvalidRequest"}},
	EC2:      {word{503, "RequestLimitExceeded"}, word{400, "RequestEntityTooLarge"}, word{400, "InvalidRequest"}},
	Query:    {word{400, "Throttling"}, word{400, "RequestEntityTooLarge"}, word{400, "ValidationError"}},
	RestXML:  {word{400, "Throttling"}, word{400, "RequestEntityTooLarge"}, word{400, "ValidationError"}},
	RestJSON: {word{429, "ThrottlingException"}, byJSON.tooLarge, byJSON.invalid},
}

func (e *Error) word(service string, p Protocol) word {
	own, ok := byProtocol[p]
	suffix := ""
	if !ok || p == RestJSON {
		suffix = "Exception"
	}
	if !ok {
		own = byJSON
	}
	switch e.Kind {
	case refuse.Exhausted:
		return word{400, "ServiceQuotaExceeded" + suffix}
	case refuse.Limited:
		if !e.Final {
			return cmp.Or(throttle[service], own.throttled)
		}
	case refuse.Unavailable:
		if !e.Final {
			return word{503, "ServiceUnavailable" + suffix}
		}
	case refuse.TooLarge:
		return own.tooLarge
	case refuse.Invalid, refuse.Stranger:
		return own.invalid
	}
	return word{400, "WeirGaveUp" + suffix}
}

// Write writes an error for an operation in the form that its clients parse. Two headers have the delay before a retry: one in
// seconds, rounded up, and x-amz-retry-after in milliseconds.
func (e *Error) Write(w http.ResponseWriter, o Op, method string) {
	said := e.word(o.Service, o.Protocol)
	h := w.Header()
	if e.RetryAfter > 0 && !e.Final {
		h.Set("X-Amz-Retry-After", strconv.FormatInt(refuse.Ceil(e.RetryAfter, time.Millisecond), 10))
	}
	name := "X-Amzn-Requestid"
	if o.Protocol == S3 {
		name = "X-Amz-Request-Id"
	}
	h.Set(name, e.ID)
	body := e.body(h, o.Protocol, said)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if method == http.MethodHead {
		body = nil
	}
	w.WriteHeader(said.status)
	_, _ = w.Write(body)
}

func (e *Error) body(h http.Header, p Protocol, said word) []byte {
	switch p {
	case JSON10, JSON11:
		h.Set("Content-Type", "application/x-amz-json-1."+strconv.Itoa(int(p-JSON10)))
		h.Set("X-Amzn-Errortype", said.code)
		return object("__type", said.code, e.Message)
	case CBOR:
		h.Set("Content-Type", "application/cbor")
		h.Set("Smithy-Protocol", "rpc-v2-cbor")
		return cborMap("__type", said.code, "message", e.Message)
	case S3:
		h.Set("Content-Type", "application/xml")
		return document(&s3Error{Code: said.code, Message: e.Message, RequestID: e.ID})
	case EC2:
		h.Set("Content-Type", "text/xml;charset=UTF-8")
		return document(&ec2Error{Code: said.code, Message: e.Message, RequestID: e.ID})
	case Query, RestXML:
		h.Set("Content-Type", "text/xml")
		return document(&queryError{Type: sender(said.status), Code: said.code, Message: e.Message, RequestID: e.ID})
	}
	h.Set("Content-Type", "application/json")
	h.Set("X-Amzn-Errortype", said.code)
	return object("code", said.code, e.Message)
}

func object(field, code, message string) []byte {
	b, _ := json.Marshal(map[string]string{field: code, "message": clean(message)})
	return b
}

type s3Error struct {
	XMLName   xml.Name `xml:"Error"`
	Code      string
	Message   string
	RequestID string `xml:"RequestId"`
}

type queryError struct {
	XMLName   xml.Name `xml:"ErrorResponse"`
	Type      string   `xml:"Error>Type"`
	Code      string   `xml:"Error>Code"`
	Message   string   `xml:"Error>Message"`
	RequestID string   `xml:"RequestId"`
}

type ec2Error struct {
	XMLName   xml.Name `xml:"Response"`
	Code      string   `xml:"Errors>Error>Code"`
	Message   string   `xml:"Errors>Error>Message"`
	RequestID string   `xml:"RequestID"`
}

func document(v any) []byte {
	b, _ := xml.Marshal(v)
	return append([]byte(xml.Header), b...)
}

func sender(status int) string {
	if status < 500 {
		return "Sender"
	}
	return "Receiver"
}

func clean(s string) string { return strings.ToValidUTF8(s, "?") }

// cborMap encodes a map of texts (RFC 8949 3.1).
func cborMap(pairs ...string) []byte {
	b := []byte{0xa0 | byte(len(pairs)/2)}
	for _, s := range pairs {
		s = clean(s)
		if len(s) > 0xffff {
			s = strings.ToValidUTF8(s[:0xffff], "")
		}
		switch {
		case len(s) < 24:
			b = append(b, 0x60|byte(len(s)))
		case len(s) < 0x100:
			b = append(b, 0x78, byte(len(s)))
		default:
			b = append(b, 0x79, byte(len(s)>>8), byte(len(s)))
		}
		b = append(b, s...)
	}
	return b
}
