package drs

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	sdk "github.com/aws/aws-sdk-go-v2/service/drs"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/outcome/classify"
)

// attempts observes the attempts of one call inside any retry loop, so that its findings do not depend on how outer layers wrap
// errors.
type attempts struct {
	once  bool  // after an attempt that may have had an effect, make no other, even if the policy would
	doubt error // the error of an attempt that may have had an effect; nil if there was none

	status int // the status of that attempt's response; 0 without one
}

// broke reports whether DRS answered the attempt that may have had an effect with a server error.
func (a *attempts) broke() bool {
	return a.status == http.StatusInternalServerError || a.status == http.StatusServiceUnavailable
}

// on adds the observer to the options of a call.
func (a *attempts) on(options []func(*sdk.Options)) []func(*sdk.Options) {
	return append(options[:len(options):len(options)], func(o *sdk.Options) {
		o.APIOptions = append(o.APIOptions[:len(o.APIOptions):len(o.APIOptions)], func(s *middleware.Stack) error {
			return s.Deserialize.Add(a, middleware.Before)
		})
	})
}

func (*attempts) ID() string { return "weir:Doubt" }

func (a *attempts) HandleDeserialize(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (out middleware.DeserializeOutput, metadata middleware.Metadata, err error) {
	if a.once && a.doubt != nil {
		return out, metadata, fmt.Errorf("it may have been processed, so it is not sent again: %w", a.doubt)
	}
	out, metadata, err = next.HandleDeserialize(ctx, in)
	if err != nil && !harmless(out.RawResponse, err) {
		a.doubt, a.status = err, statusOf(out.RawResponse)
	}
	return out, metadata, err
}

// harmless reports whether a failed attempt certainly had no effect: it was never sent, or DRS refused it.
func harmless(raw any, err error) bool {
	answer, _ := raw.(*smithyhttp.Response)
	if statusOf(raw) == 0 {
		return classify.Error(context.Background(), err).Undone
	}
	if answer.StatusCode < http.StatusBadRequest {
		return false // it was done, and the response broke off
	}
	code := ""
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		code = api.ErrorCode()
	}
	if answer.StatusCode >= http.StatusInternalServerError {
		class, ok := classify.AWSCode(code)
		return ok && class == outcome.Throttled // a Retry-After proves nothing
	}
	r := classify.Response{Method: http.MethodPost, Status: answer.StatusCode, Header: answer.Header.Clone()}
	if code != "" && r.Header != nil {
		r.Header.Set("X-Amzn-Errortype", code)
	}
	o := classify.HTTP(r)
	return o.Undone || o.Class == outcome.Rejected
}

func statusOf(raw any) int {
	answer, _ := raw.(*smithyhttp.Response)
	if answer == nil || answer.Response == nil {
		return 0
	}
	return answer.StatusCode
}
