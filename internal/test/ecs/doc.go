// Package ecs has tests of deploy/ecs: CloudFormation accepts the template, and the template matches weir.
package ecs
