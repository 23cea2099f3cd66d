"""The phases of a diagnosis. Each has the same rooms: contract, context, rules, builder, summary."""
