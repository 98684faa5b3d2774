package export

import (
	"maps"
	"slices"
	"strings"
)

// A made is a part of a template.
type made = map[string]any

// parameter is a value that the user of the template supplies.
func parameter(about string) made { return made{"Type": "String", "Description": about} }

func ref(name string) made { return made{"Ref": name} }

// template returns the CloudFormation template. It creates the stage, because the settings are a part of it.
func (g *gateway) template() made {
	resources, parameters := made{}, made{"Api": parameter("the id of the API"), "StageName": parameter("the name of the stage")}
	switch {
	case g.o.WebSocket:
		parameters["Deployment"] = parameter("the id of the deployment that the stage serves")
		properties := made{"ApiId": ref("Api"), "StageName": ref("StageName"), "DeploymentId": ref("Deployment")}
		routes := made{}
		for name, t := range g.stage {
			if name == "" {
				properties["DefaultRouteSettings"] = t.settings()
			} else {
				routes[name] = t.settings()
			}
		}
		if len(routes) > 0 {
			properties["RouteSettings"] = routes
		}
		resources["Stage"] = made{"Type": "AWS::ApiGatewayV2::Stage", "Properties": properties}
	case len(g.stage) > 0:
		parameters["Deployment"] = parameter("the id of the deployment that the stage serves")
		resources["Stage"] = made{"Type": "AWS::ApiGateway::Stage", "Properties": made{
			"RestApiId": ref("Api"), "StageName": ref("StageName"), "DeploymentId": ref("Deployment"), "MethodSettings": g.methods(),
		}}
	}
	if len(g.plan) > 0 || g.quota != nil {
		resources["UsagePlan"] = g.usagePlan(resources["Stage"] != nil)
	}
	return made{"AWSTemplateFormatVersion": "2010-09-09", "Parameters": parameters, "Resources": resources}
}

func (t throttle) settings() made {
	return made{"ThrottlingRateLimit": t.Rate, "ThrottlingBurstLimit": t.Burst}
}

// methods returns the settings of a stage for its methods. Their paths have ~1 for each slash except the first.
func (g *gateway) methods() (all []made) {
	for _, place := range slices.Sorted(maps.Keys(g.stage)) {
		one := g.stage[place].settings()
		one["ResourcePath"], one["HttpMethod"] = "/*", "*"
		if at := strings.LastIndexByte(place, '/'); at >= 0 {
			one["HttpMethod"], one["ResourcePath"] = place[at+1:], "/"
			if path := strings.TrimSuffix(place[:at], "/"); path != "" {
				one["ResourcePath"] = "/" + strings.ReplaceAll(path, "/", "~1")
			}
		}
		all = append(all, one)
	}
	return all
}

// usagePlan returns the plan of each client. It depends on the stage if the template creates that too.
func (g *gateway) usagePlan(stage bool) made {
	at := made{"ApiId": ref("Api"), "Stage": ref("StageName")}
	properties := made{"ApiStages": []made{at}}
	methods := made{}
	for place, t := range g.plan {
		one := made{"RateLimit": t.Rate, "BurstLimit": t.Burst}
		if place == "" {
			properties["Throttle"] = one
		} else {
			methods[place] = one
		}
	}
	if len(methods) > 0 {
		at["Throttle"] = methods
	}
	if g.quota != nil {
		properties["Quota"] = g.quota
	}
	plan := made{"Type": "AWS::ApiGateway::UsagePlan", "Properties": properties}
	if stage {
		plan["DependsOn"] = "Stage"
	}
	return plan
}
