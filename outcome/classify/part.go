package classify

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
)

// PartLength returns the number of bytes that a response with a part of a file announces, or 0. Its Content-Length may be that of a
// shorter body, which a caller would append as the whole part. A response to a HEAD has the header, but no body.
func PartLength(status int, h http.Header) int64 {
	if status != http.StatusPartialContent {
		return 0
	}
	unit, part, _ := strings.Cut(first(h, "Content-Range"), " ")
	part, _, _ = strings.Cut(part, "/")
	from, to, _ := strings.Cut(part, "-")
	begin, err1 := strconv.ParseInt(from, 10, 64)
	end, err2 := strconv.ParseInt(to, 10, 64)
	if err := errors.Join(err1, err2); err != nil || !strings.EqualFold(unit, "bytes") || begin < 0 || end < begin {
		return 0
	}
	return end - begin + 1
}
