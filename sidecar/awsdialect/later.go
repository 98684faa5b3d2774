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

// preconditions are headers without X-Amz- that say what a request does.
var preconditions = []string{"Cache-Control", "Content-Disposition", "Content-Md5", "Expires", "If-Match", "If-Modified-Since", "If-None-Match", "If-Unmodified-Since", "Range"}

// Keeps is httpx.Later's.
func (d *Dialect) Keeps(header string) bool {
	return strings.HasPrefix(header, "X-Amz-") && !resign.Renews(header) || slices.Contains(preconditions, header)
}

// Renews is httpx.Later's: signatures are made when the request is sent, and what is no signature is not made anew.
func (d *Dialect) Renews(header, value string) bool {
	return resign.Renews(header) && (header != "Authorization" || strings.HasPrefix(value, "AWS4-HMAC-SHA256"))
}

// Streams is httpx.Streamer's: what a form asks for stands in its body.
func (x *exchange) Streams() bool { return !x.op.ByForm() }
