package awsdialect

import (
	"slices"
	"strings"

	"github.com/seed1158cd35/weir/awsx/resign"
	"github.com/seed1158cd35/weir/httpx"
)

var (
	_ httpx.Later    = (*Dialect)(nil)
	_ httpx.Streamer = (*exchange)(nil)
)

// preconditions are headers without the prefix X-Amz- that affect what a request does.
var preconditions = []string{"Cache-Control", "Content-Disposition", "Content-Md5", "Expires", "If-Match", "If-Modified-Since", "If-None-Match", "If-Unmodified-Since", "Range"}

// Keeps implements httpx.Later.
func (d *Dialect) Keeps(header string) bool {
	return strings.HasPrefix(header, "X-Amz-") && !resign.Renews(header) || slices.Contains(preconditions, header)
}

// Renews implements httpx.Later. Signatures are created when the request is sent. Other authorization is not renewed.
func (d *Dialect) Renews(header, value string) bool {
	return resign.Renews(header) && (header != "Authorization" || strings.HasPrefix(value, "AWS4-HMAC-SHA256"))
}

// Streams implements httpx.Streamer. The body of a form contains its operation.
func (x *exchange) Streams() bool { return !x.op.ByForm() }
