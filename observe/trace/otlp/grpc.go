package otlp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/seed1158cd35/weir/observe/trace"
)

// GRPC configures an exporter over gRPC.
type GRPC struct {
	Target   string            // "127.0.0.1:4317"
	Header   map[string]string // added to each request, for instance a token
	Resource Resource
	TLS      *tls.Config // nil means no TLS
}

type grpcExporter struct {
	grpcSender
	resource *resource
}

// A grpcSender sends requests by one gRPC method.
type grpcSender struct {
	conn   *grpc.ClientConn
	header metadata.MD
	method string
}

var _ trace.Exporter = (*grpcExporter)(nil)

const exportMethod = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"

// NewGRPC returns an exporter. It connects when there is something to send. The tracer closes it.
func NewGRPC(o GRPC) (trace.Exporter, error) {
	e := &grpcExporter{resource: newResource(o.Resource)}
	if err := e.begin(o, exportMethod); err != nil {
		return nil, err
	}
	return e, nil
}

func (e *grpcSender) begin(o GRPC, method string) error {
	if o.Target == "" {
		return errors.New("target: want one such as 127.0.0.1:4317")
	}
	c := insecure.NewCredentials()
	if o.TLS != nil {
		c = credentials.NewTLS(o.TLS)
	}
	conn, err := grpc.NewClient(o.Target, grpc.WithTransportCredentials(c), grpc.WithUserAgent("weir"), grpc.WithDisableServiceConfig(),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(written{})))
	if err != nil {
		return err
	}
	e.conn, e.header, e.method = conn, metadata.MD{}, method
	for name, value := range o.Header {
		e.header.Set(strings.ToLower(name), value)
	}
	return nil
}

// Close closes the connection.
func (e *grpcSender) Close() error { return e.conn.Close() }

// Export sends spans in one request.
func (e *grpcExporter) Export(ctx context.Context, spans []trace.Span) error {
	return e.send(ctx, e.resource.encode(nil, spans))
}

func (e *grpcSender) send(ctx context.Context, body []byte) error {
	var answer []byte
	if err := e.conn.Invoke(metadata.NewOutgoingContext(ctx, e.header), e.method, &body, &answer); err != nil {
		return judgeStatus(err)
	}
	if n, err := partly(answer); err != nil {
		return &trace.PartialError{Spans: n, Err: err}
	}
	return nil
}

// judgeStatus converts a gRPC error. It returns a *LaterError for the codes that OTLP defines as retryable.
func judgeStatus(err error) error {
	s := status.Convert(err)
	after, said := time.Duration(0), false
	for _, d := range s.Details() {
		if r, ok := d.(*errdetails.RetryInfo); ok && r.GetRetryDelay().IsValid() {
			after, said = min(max(0, r.GetRetryDelay().AsDuration()), longestRest), true
		}
	}
	why := fmt.Errorf("%s: %s", s.Code(), s.Message())
	switch s.Code() {
	case codes.Canceled, codes.DeadlineExceeded, codes.Aborted, codes.OutOfRange, codes.Unavailable, codes.DataLoss:
		return &trace.LaterError{After: after, Err: why}
	case codes.ResourceExhausted:
		if said {
			return &trace.LaterError{After: after, Err: why}
		}
	}
	return why
}

// written is the codec of encoded messages: *[]byte.
type written struct{}

func (written) Name() string { return "proto" }

func (written) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }

func (written) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = append([]byte(nil), data...)
	return nil
}
