package grpcclass

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"net/http"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/outcome/classify"
)

func with(t testing.TB, c codes.Code, details ...protoadapt.MessageV1) *status.Status {
	t.Helper()
	s, err := status.New(c, "m").WithDetails(details...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func retryIn(d time.Duration) *errdetails.RetryInfo {
	return &errdetails.RetryInfo{RetryDelay: durationpb.New(d)}
}

func quotaOf(id string) *errdetails.QuotaFailure {
	return &errdetails.QuotaFailure{Violations: []*errdetails.QuotaFailure_Violation{{QuotaId: id}}}
}

func push(v ...string) metadata.MD { return metadata.MD{"grpc-retry-pushback-ms": v} }

func TestStatus(t *testing.T) {
	wait := func(d time.Duration) outcome.Hint { return outcome.Hint{Said: true, After: d} }
	exhausted := outcome.Outcome{Class: outcome.Throttled, Code: "RESOURCE_EXHAUSTED", Undone: true}
	unavailable := outcome.Outcome{Class: outcome.Failed, Code: "UNAVAILABLE"}
	hinted := func(o outcome.Outcome, h outcome.Hint) outcome.Outcome { o.Hint = h; return o }
	tests := []struct {
		name    string
		status  *status.Status
		trailer metadata.MD
		want    outcome.Outcome
	}{
		{"no status is OK", nil, nil, outcome.Outcome{Class: outcome.OK}},
		{"exhausted", status.New(codes.ResourceExhausted, "slow"), nil, exhausted},
		{"with RetryInfo", with(t, codes.ResourceExhausted, retryIn(1500*time.Millisecond)), nil, hinted(exhausted, wait(1500*time.Millisecond))},
		{"per minute", with(t, codes.ResourceExhausted, quotaOf("RequestsPerMinute"), retryIn(time.Second)), nil, hinted(exhausted, wait(time.Second))},
		{"per day", with(t, codes.ResourceExhausted, retryIn(time.Second), quotaOf("RequestsPerDay")), nil, hinted(exhausted, outcome.Hint{Quota: true})},
		{"negative delay", with(t, codes.ResourceExhausted, retryIn(-time.Second)), nil, exhausted},
		{"empty RetryInfo", with(t, codes.ResourceExhausted, &errdetails.RetryInfo{}), nil, exhausted},
		{"endless delay", with(t, codes.ResourceExhausted, &errdetails.RetryInfo{RetryDelay: &durationpb.Duration{Seconds: math.MaxInt64}}), nil, hinted(exhausted, wait(classify.MaxAfter))},
		{"too large", status.New(codes.ResourceExhausted, "grpc: received message larger than max (5 vs. 4)"), nil, outcome.Outcome{Class: outcome.Rejected, Code: "RESOURCE_EXHAUSTED"}},
		{"unavailable", status.New(codes.Unavailable, ""), nil, unavailable},
		{"pushback", status.New(codes.Unavailable, ""), push("250"), hinted(unavailable, outcome.Hint{Advice: outcome.Again, Said: true, After: 250 * time.Millisecond})},
		{"pushback beats RetryInfo", with(t, codes.Unavailable, retryIn(time.Hour)), push("0"), hinted(unavailable, outcome.Hint{Advice: outcome.Again, Said: true})},
		{"negative pushback", status.New(codes.Unavailable, ""), push("-1"), hinted(unavailable, outcome.Hint{Advice: outcome.NotAgain})},
		{"unreadable pushback", status.New(codes.Unavailable, ""), push("soon"), hinted(unavailable, outcome.Hint{Advice: outcome.NotAgain})},
		{"pushback too large", status.New(codes.Unavailable, ""), push("9300000000000000000"), hinted(unavailable, outcome.Hint{Advice: outcome.NotAgain})},
		{"two pushbacks", status.New(codes.Unavailable, ""), push("1", "2"), hinted(unavailable, outcome.Hint{Advice: outcome.NotAgain})},
		{"pushback on a rejection", status.New(codes.Aborted, ""), push("5"), outcome.Outcome{Class: outcome.Failed, Code: "ABORTED", Hint: outcome.Hint{Advice: outcome.Again, Said: true, After: 5 * time.Millisecond}}},
		{"code of the future", status.New(codes.Code(99), ""), nil, outcome.Outcome{Class: outcome.Unknown, Code: "99"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Status(tt.status, tt.trailer); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

func TestEveryCodeHasAClass(t *testing.T) {
	want := map[outcome.Class][]codes.Code{
		outcome.OK:        {codes.OK},
		outcome.Throttled: {codes.ResourceExhausted},
		outcome.Unknown:   {codes.Canceled},
		outcome.Failed:    {codes.Unknown, codes.DeadlineExceeded, codes.Internal, codes.Unavailable, codes.DataLoss},
		outcome.Rejected: {
			codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.PermissionDenied, codes.FailedPrecondition,
			codes.Aborted, codes.OutOfRange, codes.Unimplemented, codes.Unauthenticated,
		},
	}
	seen := 0
	for class, cs := range want {
		for _, c := range cs {
			seen++
			if got := Status(status.New(c, ""), nil); got.Class != class {
				t.Errorf("%v: got %v, want %v", c, got.Class, class)
			}
			if c != codes.OK && strings.ToUpper(Name(c)) != Name(c) {
				t.Errorf("%v is called %q", c, Name(c))
			}
		}
	}
	if seen != 17 {
		t.Errorf("%d codes, want 17", seen)
	}
}

// knows is a status error with a different outcome.
type knows struct{ error }

func (knows) Outcome() outcome.Outcome { return outcome.Outcome{Class: outcome.Rejected, Code: "mine"} }

func TestError(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	exhausted := status.Error(codes.ResourceExhausted, "m")
	tests := []struct {
		name string
		ctx  context.Context
		err  error
		want outcome.Outcome
	}{
		{"nil", gone, nil, outcome.Outcome{Class: outcome.OK}},
		{"the caller left", gone, status.Error(codes.DeadlineExceeded, "m"), outcome.Outcome{Class: outcome.Canceled, Code: "canceled"}},
		{"wrapped", t.Context(), fmt.Errorf("calling: %w", exhausted), outcome.Outcome{Class: outcome.Throttled, Code: "RESOURCE_EXHAUSTED", Undone: true}},
		{"no status", t.Context(), syscall.ECONNREFUSED, outcome.Outcome{Class: outcome.Failed, Code: "connection refused", Undone: true, Unsent: true}},
		{"knows better", t.Context(), knows{exhausted}, outcome.Outcome{Class: outcome.Rejected, Code: "mine"}},
		{"boom", t.Context(), errors.New("boom"), outcome.Outcome{Class: outcome.Unknown, Code: "error"}},
	}
	for _, tt := range tests {
		if got := Error(tt.ctx, tt.err, nil); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
	if got := Error(t.Context(), exhausted, push("-1")); got.Hint.Advice != outcome.NotAgain {
		t.Errorf("trailer: got %+v", got)
	}
}

func TestHeader(t *testing.T) {
	b, err := proto.Marshal(with(t, codes.ResourceExhausted, retryIn(36*time.Second)).Proto())
	if err != nil {
		t.Fatal(err)
	}
	waits := outcome.Outcome{Class: outcome.Throttled, Code: "RESOURCE_EXHAUSTED", Undone: true, Hint: outcome.Hint{Said: true, After: 36 * time.Second}}
	tests := []struct {
		name  string
		lines map[string]string
		want  outcome.Outcome
		ok    bool
	}{
		{"none", nil, outcome.Outcome{}, false},
		{"ok", map[string]string{"Grpc-Status": "0"}, outcome.Outcome{Class: outcome.OK}, true},
		{"details, padded", map[string]string{"Grpc-Status": "8", "Grpc-Status-Details-Bin": base64.StdEncoding.EncodeToString(b)}, waits, true},
		{"details, unpadded", map[string]string{"Grpc-Status": "8", "Grpc-Status-Details-Bin": base64.RawStdEncoding.EncodeToString(b)}, waits, true},
		{"details of something else", map[string]string{"Grpc-Status": "14", "Grpc-Status-Details-Bin": base64.StdEncoding.EncodeToString(b)}, outcome.Outcome{Class: outcome.Failed, Code: "UNAVAILABLE"}, true},
		{"broken details", map[string]string{"Grpc-Status": "14", "Grpc-Status-Details-Bin": "!"}, outcome.Outcome{Class: outcome.Failed, Code: "UNAVAILABLE"}, true},
		{"escaped message", map[string]string{"Grpc-Status": "8", "Grpc-Message": "received%20message larger than max"}, outcome.Outcome{Class: outcome.Rejected, Code: "RESOURCE_EXHAUSTED"}, true},
		{"pushback", map[string]string{"Grpc-Status": "14", "Grpc-Retry-Pushback-Ms": "-1"}, outcome.Outcome{Class: outcome.Failed, Code: "UNAVAILABLE", Hint: outcome.Hint{Advice: outcome.NotAgain}}, true},
		{"unreadable", map[string]string{"Grpc-Status": "x"}, outcome.Outcome{Class: outcome.Failed, Code: "UNKNOWN"}, true},
		{"negative", map[string]string{"Grpc-Status": "-1"}, outcome.Outcome{Class: outcome.Failed, Code: "UNKNOWN"}, true},
	}
	for _, tt := range tests {
		h := make(http.Header)
		for k, v := range tt.lines {
			h.Set(k, v)
		}
		if got, ok := Header(h); ok != tt.ok || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s:\ngot  %+v, %v\nwant %+v, %v", tt.name, got, ok, tt.want, tt.ok)
		}
	}
}

func FuzzHeader(f *testing.F) {
	f.Add("8", "CAgSAW0", "250")
	f.Add("14", "", "-1")
	f.Fuzz(func(t *testing.T, code, details, pushback string) {
		o, _ := Header(http.Header{"Grpc-Status": {code}, "Grpc-Status-Details-Bin": {details}, "Grpc-Retry-Pushback-Ms": {pushback}})
		if o.Hint.After < 0 || o.Hint.After > classify.MaxAfter {
			t.Errorf("got %+v", o)
		}
	})
}
