"""Random metadata filters for hypothesis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st


def filters(keys: Sequence[str], scalars: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Filters of every operator but ``$startswith`` on some keys, joined and negated."""
    ordered = scalars.filter(lambda value: not isinstance(value, bool))
    operands = {
        **dict.fromkeys(("$eq", "$ne", "$contains"), scalars),
        **dict.fromkeys(("$gt", "$gte", "$lt", "$lte"), ordered),
        **dict.fromkeys(("$in", "$nin"), st.lists(scalars, max_size=4)),
        "$exists": st.booleans(),
    }
    conditions = st.one_of(
        scalars,
        *(st.fixed_dictionaries({operator: operand}) for operator, operand in operands.items()),
        st.fixed_dictionaries({"$gte": ordered, "$lt": ordered}),
    )

    def joined(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        several = st.lists(inner, min_size=1, max_size=3)
        parts = [{"$and": several}, {"$or": several}, {"$not": inner}, {"$not": inner, keys[0]: conditions}]
        return st.one_of(*map(st.fixed_dictionaries, parts))

    leaves = st.dictionaries(st.sampled_from(keys), conditions, max_size=2)
    return st.recursive(leaves, joined, max_leaves=5)
