"""Words with which shops and accounting programs say yes and no."""

YES = frozenset(
    {
        *("1", "true", "yes", "y", "on", "да", "истина"),
        *("active", "a", "published", "visible", "both", "catalog", "search"),
        *("выставлен", "опубликован", "виден", "активен", "активна", "активный", "активно"),
        *("continue", "notify"),  # what Shopify and WooCommerce do without stock
        *("instock", "in stock", "in_stock", "backorder", "в наличии", "есть", "много", "+"),
    }
)
NO = frozenset(
    {
        # WooCommerce writes -1 for a draft, and Magento 2 for what is off.
        *("", "0", "-1", "2", "false", "no", "n", "off", "none", "нет", "ложь"),
        *("inactive", "d", "h", "hidden", "archived", "скрыт", "скрытый", "не выставлен", "архив"),
        *("неактивен", "неактивна", "неактивный", "неактивно", "не активен", "не активна"),
        "deny",
        *("outofstock", "out of stock", "out_of_stock", "нет в наличии", "отсутствует", "-"),
    }
)
# Words of a stock without a limit.
UNLIMITED = frozenset({"unlimited", "∞", "без ограничений", "неограниченно"})
