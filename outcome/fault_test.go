package outcome_test

import (
	"testing"

	"github.com/seed1158cd35/weir/outcome"
)

func TestFaultsAreToldApart(t *testing.T) {
	for _, c := range []struct {
		class  outcome.Class
		code   string
		unsent bool
		want   string
	}{
		{outcome.OK, "", false, ""},
		{outcome.Canceled, "canceled", false, ""},
		{outcome.Throttled, "429", false, "transient"},
		{outcome.Failed, "503", false, "transient"},
		{outcome.Failed, "connection refused", true, "transient"},
		{outcome.Unknown, "error", false, "transient"},
		{outcome.Rejected, "401", false, "permanent"},
		{outcome.Rejected, "403", false, "permanent"},
		{outcome.Rejected, "404", false, "permanent"},
		{outcome.Rejected, "409", false, "permanent"},
		{outcome.Rejected, "AccessDeniedException", false, "permanent"},
		{outcome.Rejected, "InvalidAccessKeyId", false, "permanent"},
		{outcome.Rejected, "InvalidSignatureException", false, "permanent"},
		{outcome.Rejected, "400", false, "validation"},
		{outcome.Rejected, "422", false, "validation"},
		{outcome.Rejected, "ValidationException", false, "validation"},
		{outcome.Rejected, "MalformedXML", false, "validation"},
		{outcome.Rejected, "INVALID_ARGUMENT", false, "validation"},
		{outcome.Rejected, "VALIDATION_ERROR", true, "validation"},
		{outcome.Rejected, outcome.InternalError, true, "system"},
		{outcome.Rejected, outcome.InternalError, false, "permanent"}, // the code comes from the upstream: nothing on this side needs repair
	} {
		if got := (&outcome.Outcome{Class: c.class, Code: c.code, Unsent: c.unsent}).Fault().String(); got != c.want {
			t.Errorf("%v %q, unsent %v: %q, want %q", c.class, c.code, c.unsent, got, c.want)
		}
	}
	if got := outcome.Fault(99).String(); got != "" {
		t.Errorf("a fault that is none is %q", got)
	}
}
