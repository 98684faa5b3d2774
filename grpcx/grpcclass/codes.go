package grpcclass

import (
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/seed1158cd35/weir/outcome"
)

// table has each code's name on the wire and its class.
var table = [...]struct {
	name  string
	class outcome.Class
}{
	codes.OK:                 {"OK", outcome.OK},
	codes.Canceled:           {"CANCELLED", outcome.Unknown}, // not by the caller, which is still waiting
	codes.Unknown:            {"UNKNOWN", outcome.Failed},
	codes.InvalidArgument:    {"INVALID_ARGUMENT", outcome.Rejected},
	codes.DeadlineExceeded:   {"DEADLINE_EXCEEDED", outcome.Failed},
	codes.NotFound:           {"NOT_FOUND", outcome.Rejected},
	codes.AlreadyExists:      {"ALREADY_EXISTS", outcome.Rejected},
	codes.PermissionDenied:   {"PERMISSION_DENIED", outcome.Rejected},
	codes.ResourceExhausted:  {"RESOURCE_EXHAUSTED", outcome.Throttled},
	codes.FailedPrecondition: {"FAILED_PRECONDITION", outcome.Rejected},
	codes.Aborted:            {"ABORTED", outcome.Rejected}, // the caller must repeat its read as well
	codes.OutOfRange:         {"OUT_OF_RANGE", outcome.Rejected},
	codes.Unimplemented:      {"UNIMPLEMENTED", outcome.Rejected},
	codes.Internal:           {"INTERNAL", outcome.Failed},
	codes.Unavailable:        {"UNAVAILABLE", outcome.Failed},
	codes.DataLoss:           {"DATA_LOSS", outcome.Failed},
	codes.Unauthenticated:    {"UNAUTHENTICATED", outcome.Rejected},
}

// Name returns the code in the specification's spelling, "RESOURCE_EXHAUSTED", or the number of an unknown code.
func Name(c codes.Code) string {
	if int(c) < len(table) {
		return table[c].name
	}
	return strconv.Itoa(int(c))
}

// tooLarge reports whether the message exceeded the size limit, the only other use of RESOURCE_EXHAUSTED in gRPC libraries. A
// repeated message would be as large.
func tooLarge(message string) bool {
	return strings.Contains(message, "message larger than max") || strings.HasPrefix(message, "grpc: message too large") ||
		strings.Contains(message, "message after decompression larger than max")
}
