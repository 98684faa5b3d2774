package envoy

import (
	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

// metadata lists the exceeded limits in quota_mode for Envoy's later filters, by the positions of their descriptors
// in the request. It returns nil if the request has no such limits.
func (p *plan) metadata(req *rls.RateLimitRequest) *structpb.Struct {
	soft, violations := false, []*structpb.Value(nil)
	for i := range p.places {
		if at := &p.places[i]; at.counter != nil && at.soft {
			soft = true
			if p.verdicts[i].over {
				violations = append(violations, structpb.NewNumberValue(float64(i)))
			}
		}
	}
	if !soft {
		return nil
	}
	fields := map[string]*structpb.Value{
		"domain":           structpb.NewStringValue(p.domain),
		"quotaModeEnabled": structpb.NewBoolValue(true),
	}
	var descriptors []*structpb.Value
	for _, d := range req.GetDescriptors() {
		descriptors = append(descriptors, structpb.NewStructValue(&structpb.Struct{
			Fields: map[string]*structpb.Value{"entries": values(entries(d))},
		}))
	}
	fields["descriptors"] = values(descriptors)
	if len(violations) > 0 {
		fields["quotaModeViolations"] = values(violations)
	}
	if n := req.GetHitsAddend(); n > 0 {
		fields["hitsAddend"] = structpb.NewNumberValue(float64(n))
	}
	return &structpb.Struct{Fields: fields}
}

func entries(d *common.RateLimitDescriptor) (all []*structpb.Value) {
	for _, e := range d.GetEntries() {
		all = append(all, structpb.NewStringValue(e.GetKey()+"="+e.GetValue()))
	}
	return all
}

func values(all []*structpb.Value) *structpb.Value {
	return structpb.NewListValue(&structpb.ListValue{Values: all})
}
