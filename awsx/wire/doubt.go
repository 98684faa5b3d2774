package wire

import (
	"net/http"

	"github.com/seed1158cd35/weir/internal/paths"
)

// Contradiction returns why a service might take a request for another operation than its Op, "" if it could not. whole means
// that Form is the complete body.
func (o *Op) Contradiction(r Request, whole bool) string {
	switch {
	case o.Protocol == Query || o.Protocol == EC2:
		return twice(r, whole)
	case deaf(o.Service):
		return ""
	case len(r.Header["X-Amz-Target"]) > 1:
		return "X-Amz-Target is given twice"
	case o.Protocol == CBOR && r.Header["X-Amz-Target"] != nil:
		return "Smithy-Protocol and X-Amz-Target each name an operation: leave one of them out"
	case o.Protocol == CBOR && o.Name == "":
		return "Smithy-Protocol requires the path /service/NAME/operation/NAME"
	case r.Header["X-Amz-Target"] != nil && paths.Widest(r.Path) != "/":
		return "X-Amz-Target and the path could each name an operation: send it to /"
	case r.Header["X-Amz-Target"] != nil && isForm(r.Header):
		return "X-Amz-Target and a form could each name an operation: send it as JSON"
	}
	return ""
}

// twice returns an error text if a form request does not have exactly one Action.
func twice(r Request, whole bool) string {
	first, found := "", false
	for name := range actions(r) {
		if found && name != first {
			return "Action is given twice, with different values"
		}
		first, found = name, true
	}
	if !found && !whole && r.Method != http.MethodGet {
		return "Action is not at the beginning of the form: put it first"
	}
	return ""
}
