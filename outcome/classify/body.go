package classify

import (
	"bytes"
	"html"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// MaxBody is the maximum number of bytes of a body that are read.
const MaxBody = 64 << 10

// NeedsBody reports whether a prefix of the body can change the result of HTTP for a response to method with this status and
// header. The prefix is the first MaxBody bytes, or the whole body if it is shorter.
//
// It is true for most errors, and for successes that may contain an error: XML responses to PUT and POST. For
// CompleteMultipartUpload, CopyObject and UploadPartCopy, S3 sends 200 before it knows the result, then white space for up to
// minutes, and then a result or an <Error>. A caller that streams must therefore not forward anything until it has seen the name
// of the root element, or MaxBody bytes that are not leading white space. It reads on, drops the leading white space, and passes
// the rest as Body. If its client needs the white space to keep the connection alive, the response cannot be classified.
func NeedsBody(method string, status int, h http.Header) bool {
	switch {
	case method == http.MethodHead, first(h, "Content-Length") == "0":
		return false
	case status >= 200 && status < 300:
		return mayHide(method) && isXML(h) && small(h)
	}
	return status >= 400 && isText(h, status)
}

// StartBytes is the size of a prefix that shows whether a success may contain an error, see NeedsStart.
const StartBytes = 48

// NeedsStart reports whether the first StartBytes of a successful response can show that it may be an error. Pass them to Starts.
// GraphQL throttles with status 200. asked means that the request went to a GraphQL server, whose responses are examined at any
// length. Other responses are examined if they are short according to their header, because then their first bytes follow
// immediately. Stored documents are the caller's data, even if they look like errors.
func NeedsStart(method string, status int, h http.Header, asked bool) bool {
	if method == http.MethodHead || !startsJSON(status, h) {
		return false
	}
	if asked || h["Mediawiki-Api-Error"] != nil { // on errors only, which may have no length
		return true
	}
	n, err := strconv.ParseInt(first(h, "Content-Length"), 10, 64)
	return err == nil && n > 0 && n <= MaxBody && h["Content-Encoding"] == nil
}

func startsJSON(status int, h http.Header) bool {
	return status == http.StatusOK && strings.Contains(mediaType(h), "json") &&
		h["Last-Modified"] == nil && h["Accept-Ranges"] == nil && h["X-Amz-Request-Id"] == nil && h["Content-Disposition"] == nil
}

// Starts reports whether a JSON text that begins with start may be an error. If so, pass the body, or its first MaxBody bytes, to
// HTTP.
func Starts(start []byte) bool {
	start = bytes.TrimLeft(bytes.TrimPrefix(start, []byte("\ufeff")), " \t\r\n[") // a list, for a batch
	rest, ok := bytes.CutPrefix(start, []byte("{"))
	if !ok {
		return false
	}
	rest = bytes.TrimLeft(rest, " \t\r\n")
	for _, key := range [...]string{`"error`, `"extensions"`, `"Response"`, `"requestId"`, `"retCode"`, `"success"`, `"ok"`, `"data"`} {
		after, ok := bytes.CutPrefix(rest, []byte(key))
		if !ok {
			continue
		}
		value := bytes.TrimLeft(after, " \t\r\n:")
		switch key {
		case `"error`, `"extensions"`:
			return true
		case `"Response"`: // Tencent Cloud
			value, ok = bytes.CutPrefix(value, []byte("{"))
			return ok && bytes.HasPrefix(bytes.TrimLeft(value, " \t\r\n"), []byte(`"Error"`))
		case `"requestId"`: // Marketo
			return !bytes.Contains(value, []byte("true")) && !bytes.Contains(value, []byte(`"result"`))
		case `"retCode"`: // Bybit
			return len(value) > 0 && value[0] >= '1' && value[0] <= '9'
		}
		return len(value) > 0 && (value[0] == 'n' || value[0] == 'f') // null, false
	}
	return false
}

// mayHide reports whether a success may contain an error. The response to a GET is the caller's data, even if it looks like an
// error.
func mayHide(method string) bool {
	return method == http.MethodPut || method == http.MethodPost
}

func isXML(h http.Header) bool {
	return strings.HasSuffix(mediaType(h), "xml")
}

// isText reports whether the response may be JSON, XML or a message. Many servers label errors as text/plain, or not at all.
// Refusals may have any type: HTML comes from proxies, and may contain the reason and the duration of a refusal.
func isText(h http.Header, status int) bool {
	t := mediaType(h)
	if status == 403 || status == 420 || status == 429 {
		kind, _, _ := strings.Cut(t, "/")
		return t != "text/event-stream" && kind != "image" && kind != "audio" && kind != "video"
	}
	return t == "" || t == "text/plain" || strings.HasSuffix(t, "xml") || strings.Contains(t, "json")
}

func mediaType(h http.Header) string {
	t, _, _ := strings.Cut(first(h, "Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(t))
}

// small reports whether the whole body may fit into a prefix. An unknown length counts as small.
func small(h http.Header) bool {
	n, err := strconv.ParseInt(first(h, "Content-Length"), 10, 64)
	return err != nil || n <= MaxBody
}

// A detail is the information in an error beyond its status.
type detail struct {
	codes   []string // the upstream's error codes, the most specific first
	message string

	field    time.Duration // the time to wait in a dedicated field
	hasField bool
	asks     bool          // a field asks to repeat the call later
	words    time.Duration // the time to wait in a message
	hasWords bool

	perDay  bool // it names a daily limit of Google
	spoken  bool // a message is about a refusal because of the rate
	daily   bool // the same, because of a limit per day or longer
	fault   bool // XML-RPC reports a fault
	refused bool // errors without a result, as GraphQL returns with status 200
	says429 bool // a number in the body is the status 429
}

// bodyWait returns the time to wait according to the body. Gemini adds the delay of its minute limit to errors about its daily
// quota, so that delay does not count. Its days end at midnight in California (ai.google.dev/gemini-api/docs/rate-limits,
// November 2026).
func bodyWait(v verdict, d *detail, base time.Time) (time.Duration, bool) {
	switch {
	case len(d.codes) > 0 && d.codes[0] == ntfyDailyMessages:
		return untilMidnight(base, time.UTC)
	case v.quota && d.perDay:
		return untilMidnight(base, california())
	case d.hasField:
		return d.field, true
	}
	return d.words, d.hasWords
}

// california is nil on machines without a time zone database.
var california = sync.OnceValue(func() *time.Location {
	zone, _ := time.LoadLocation("America/Los_Angeles") // nil if there is an error
	return zone
})

// untilMidnight returns the time until the next day in the zone.
func untilMidnight(base time.Time, zone *time.Location) (time.Duration, bool) {
	if zone == nil || base.IsZero() {
		return 0, false
	}
	y, m, day := base.In(zone).Date()
	return until(time.Date(y, m, day+1, 0, 0, 0, 0, zone), base)
}

// daily reports whether the message or the details mention a daily amount. Bedrock only has a text, "Too many tokens per day", as
// does OpenAI: "Rate limit reached for gpt-4o on requests per day (RPD)".
func daily(code string, d *detail) bool {
	if d.daily {
		return true
	}
	_, known := awsVerdict(code)
	if known = known || code == openAIRate || code == anthropicRate || code == "too_many_requests"; known && strings.Contains(strings.ToLower(d.message), "per day") {
		return true
	}
	return d.perDay
}

// tooLarge reports whether OpenAI reports a throttle for a request that exceeds even a full limit.
func tooLarge(code string, d *detail) bool {
	return code == openAIRate && strings.HasPrefix(d.message, "Request too large")
}

// readDetail collects the information in the header and the body of an error.
func readDetail(r *Response) detail {
	var d detail
	d.add(queryErrorCode(first(r.Header, "X-Amzn-Query-Error")))
	d.add(bareAWSCode(first(r.Header, "X-Amzn-Errortype")))
	d.add(first(r.Header, "X-Mashery-Error-Code"))
	if code := first(r.Header, "X-Ms-Error-Code"); decides(code) { // the only code of a HEAD
		d.add(code)
	}
	if len(r.Body) == 0 || r.Method == http.MethodHead {
		return d
	}
	base := r.base()
	switch body := plain(r); leader(body) {
	case 0:
	case '{', '[':
		d.readJSON(body, base)
		d.addAWSMessage()
		d.addStatus(r.Status)
	case '<':
		if root, text := d.readXML(body, base); root == "html" {
			d.readText(withoutTags(string(body[:min(len(body), maxPage)])), base)
		} else if len(d.codes) == 0 || !decides(d.codes[0]) { // AWS has no information in messages
			d.readText(text, base)
		}
	default:
		d.readText(string(body[:min(len(body), maxMessage)]), base)
	}
	for _, name := range [...]string{"X-Business-Use-Case-Usage", "X-Ad-Account-Usage"} { // Meta's; 0 if the account is not throttled
		if usage := first(r.Header, name); usage != "" && !d.hasField {
			var more detail
			more.readJSON([]byte(usage), base)
			d.field, d.hasField = more.field, more.field > 0
		}
	}
	return d
}

// maxPage is the number of bytes of an HTML page that are searched.
const maxPage = 16 << 10

// withoutTags returns the text of a page. A tag becomes nothing, so that it does not separate a number from its unit.
func withoutTags(page string) string {
	var text strings.Builder
	for page != "" {
		before, rest, _ := strings.Cut(page, "<")
		text.WriteString(before)
		tag, after, closed := strings.Cut(rest, ">")
		if !closed {
			break
		}
		switch name, _ := leadingWord(strings.TrimPrefix(tag, "/")); strings.ToLower(name) {
		case "a", "b", "em", "i", "span", "strong", "time", "var", "code":
		default:
			text.WriteString(".\n") // the end of a sentence
		}
		page = after
	}
	return strings.ReplaceAll(html.UnescapeString(text.String()), "\u00a0", " ")
}

// readText searches a message for known phrases.
func (d *detail) readText(message string, base time.Time) {
	message = lower(message)
	d.words, _, d.hasWords = messageWait(message, base)
	d.spoken, d.daily = saysThrottled(message)
}

// errorInside finds the error that S3 sends instead of a result after it has already sent 200.
func errorInside(r *Response) (d detail, ok bool) {
	if len(r.Body) == 0 || r.Method == http.MethodHead || r.Status < 200 || r.Status >= 300 {
		return d, false
	}
	body := plain(r)
	switch leader(body) {
	case '{', '[':
		if !startsJSON(r.Status, r.Header) || !Starts(body) {
			return d, false
		}
		d.readJSON(body, r.base())
		d.addStatus(r.Status)
		_, v, known := pick(d.codes)
		return d, d.refused && known && v.class == outcome.Throttled
	case '<':
		if !mayHide(r.Method) {
			return d, false
		}
		switch root, text := d.readXML(body, r.base()); {
		case root == "Error":
		case root == "methodResponse" && d.fault: // XML-RPC, as PyPI throttles
			if d.readText(text, r.base()); !d.spoken {
				return d, false
			}
			d.add("429")
		default:
			return d, false
		}
	default:
		return d, false
	}
	if len(d.codes) == 0 {
		d.add("InternalError") // truncated before the code
	}
	return d, true
}

// add adds a code, unless it cannot be one: codes are used in labels and logs.
func (d *detail) add(code string) {
	const most = 128
	if code == "" || len(code) > most {
		return
	}
	for i := range len(code) {
		if code[i] <= ' ' || code[i] > '~' {
			return
		}
	}
	d.codes = append(d.codes, code)
}

// addStatus adds the status in a body as the last code, unless it equals the response's.
func (d *detail) addStatus(status int) {
	if d.says429 && status != http.StatusTooManyRequests {
		d.add("429")
	}
}

// leader returns the first byte that identifies the format of the body.
func leader(body []byte) byte {
	body = bytes.TrimLeft(bytes.TrimPrefix(body, []byte("\ufeff")), " \t\r\n")
	if len(body) == 0 {
		return 0
	}
	return body[0]
}
