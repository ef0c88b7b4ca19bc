import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.api.ProductsApi;
import org.openapitools.client.model.Failure;
import org.openapitools.client.model.Product;
import org.openapitools.client.model.ProductCreate;
import org.openapitools.client.model.ProductPatch;

/** Uses the generated client: creates, reads, lists and changes a product, and fails. */
public class Main {
    public static void main(String[] arguments) throws Exception {
        ApiClient client = new ApiClient();
        client.updateBaseUri(System.getenv("BASE_URL"));
        client.setRequestInterceptor(request -> request.header("Authorization", "Bearer " + System.getenv("API_KEY")));
        ProductsApi products = new ProductsApi(client);
        String name = arguments[0];

        var made = products.createProduct(new ProductCreate().name(name).price(12900).stock(3), null).getData();
        System.out.println("created " + made.getStatus() + " " + made.getProduct().getPrice());
        String id = made.getProduct().getId();
        Product read = products.getProduct(id).getData().getProduct();
        System.out.println("read " + read.getName().equals(name) + " " + read.getSku());
        var list = products.listProducts(null, 5, null, name, null, null, null, null, null, null, null, null, null, null, null, null, null);
        System.out.println("listed " + list.getData().getTotal() + " " + list.getData().getStatus());
        var changed = products.updateProduct(new ProductPatch().id(id).price(13900), null).getData().getProduct();
        System.out.println("changed " + changed.getPrice() + " " + changed.getStock());
        try {
            products.getProduct("nobody");
        } catch (ApiException error) {
            Failure failure = client.getObjectMapper().readValue(error.getResponseBody(), Failure.class);
            System.out.println("failed " + error.getCode() + " " + failure.getData().getCode() + " " + failure.getData().getStatus());
        }
    }
}
