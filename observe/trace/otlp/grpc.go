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

// GRPC says where spans are sent by OTLP over gRPC.
type GRPC struct {
	Target   string            // "127.0.0.1:4317"
	Header   map[string]string // added to each request, such as a token
	Resource Resource
	TLS      *tls.Config // nil means plain text
}

type grpcExporter struct {
	conn     *grpc.ClientConn
	header   metadata.MD
	resource *resource
}

var _ trace.Exporter = (*grpcExporter)(nil)

// exportMethod is TraceService.Export.
const exportMethod = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"

// NewGRPC makes an exporter; it connects when there is something to send. The tracer that it is given to closes it.
func NewGRPC(o GRPC) (trace.Exporter, error) {
	if o.Target == "" {
		return nil, errors.New("target: want one such as 127.0.0.1:4317")
	}
	c := insecure.NewCredentials()
	if o.TLS != nil {
		c = credentials.NewTLS(o.TLS)
	}
	conn, err := grpc.NewClient(o.Target, grpc.WithTransportCredentials(c), grpc.WithUserAgent("weir"), grpc.WithDisableServiceConfig(),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(written{})))
	if err != nil {
		return nil, err
	}
	e := &grpcExporter{conn: conn, header: metadata.MD{}, resource: newResource(o.Resource)}
	for name, value := range o.Header {
		e.header.Set(strings.ToLower(name), value)
	}
	return e, nil
}

// Close ends the connection.
func (e *grpcExporter) Close() error { return e.conn.Close() }

// Export sends spans in one request.
func (e *grpcExporter) Export(ctx context.Context, spans []trace.Span) error {
	body := e.resource.encode(nil, spans)
	var answer []byte
	if err := e.conn.Invoke(metadata.NewOutgoingContext(ctx, e.header), exportMethod, &body, &answer); err != nil {
		return judgeStatus(err)
	}
	if n, err := partly(answer); err != nil {
		return &trace.PartialError{Spans: n, Err: err}
	}
	return nil
}

// judgeStatus is what an error of gRPC means. Those that are worth another attempt are the ones that OTLP names.
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

// written is the codec of messages that are written already: *[]byte.
type written struct{}

func (written) Name() string { return "proto" }

func (written) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }

func (written) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = append([]byte(nil), data...)
	return nil
}
